// The extension module: chooses the kernel object for this processor, then lets every family register itself.
#include <dlfcn.h>
#include <nanobind/stl/string.h>

#include <cstdlib>
#include <string>

#include "native_ref/bind/array.h"

namespace opconform {

namespace {
void* g_kernels = nullptr;
std::string g_isa;

std::string folder() {
  Dl_info here{};
  if (!dladdr(reinterpret_cast<const void*>(&folder), &here) || !here.dli_fname) return "";
  const std::string path = here.dli_fname;
  return path.substr(0, path.find_last_of('/') + 1);
}

bool supported(const std::string& isa) {
#if defined(__x86_64__)
  if (isa == "v3")
    // f16c came before avx2 in every processor, and Clang 14 does not know its name
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
  if (isa == "v4")
    return supported("v3") && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#endif
  return isa == "base";
}

std::vector<std::string> built() {
  std::vector<std::string> out;
  std::string all = OPCONFORM_ISAS;  // "base v3 v4"
  for (std::size_t at = 0; at < all.size();) {
    const std::size_t end = std::min(all.find(' ', at), all.size());
    out.push_back(all.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

void choose() {
  std::string want, known;
  for (const std::string& isa : built()) {
    known += (known.empty() ? "" : ", ") + isa;
    if (supported(isa)) want = isa;
  }
  if (const char* asked = std::getenv("OPCONFORM_ISA"); asked && *asked) {
    bool found = false;
    for (const std::string& isa : built()) found = found || isa == asked;
    if (!found)
      throw nanobind::import_error(
          (std::string("OPCONFORM_ISA=") + asked + ": expected one of " + known).c_str());
    if (!supported(asked))
      throw nanobind::import_error(
          (std::string("OPCONFORM_ISA=") + asked + ": this processor does not have it").c_str());
    want = asked;
  }
  const std::string path = folder() + "_opconform_kernels/" + want + ".so";
  g_kernels = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!g_kernels) throw nanobind::import_error((std::string("opconform kernels: ") + dlerror()).c_str());
  g_isa = want;
}
}  // namespace

const void* kernel_symbol(const char* name, std::size_t size) {
  const void* p = dlsym(g_kernels, name);
  if (!p) throw nanobind::import_error((std::string(name) + ": missing from the " + g_isa + " kernels").c_str());
  if (*static_cast<const std::size_t*>(p) != size)
    throw nanobind::import_error((std::string(name) + ": kernels are of another build, reinstall").c_str());
  return p;
}

namespace bind {
void init_arrays(nb::module_& m, nb::object descrs);
}

}  // namespace opconform

NB_MODULE(_opconform_native, m) {
  opconform::choose();
  m.attr("isa") = opconform::g_isa;
  m.attr("isas") = OPCONFORM_ISAS;
  nanobind::register_exception_translator([](const std::exception_ptr& p, void*) {
    try {
      std::rethrow_exception(p);
    } catch (const opconform::Error& e) {
      PyErr_SetString(PyExc_ValueError, e.what());
    }
  });
  nanobind::object np = nanobind::module_::import_("numpy"), ml = nanobind::module_::import_("ml_dtypes");
  nanobind::list d;
  for (const char* n : {"float64", "float32", "float16"}) d.append(np.attr(n));
  d.append(ml.attr("bfloat16"));
  for (const char* n : {"int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8", "bool"})
    d.append(np.attr("dtype")(n));
  for (const char* n : {"float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu",
                        "float4_e2m1fn", "int4", "uint4", "int2", "uint2"})
    d.append(ml.attr(n));
  for (const char* n : {"complex64", "complex128", "object", "uint8", "uint8", "uint8"}) d.append(np.attr("dtype")(n));
  for (const char* n : {"float6_e2m3fn", "float6_e3m2fn"}) d.append(ml.attr(n));
  opconform::bind::init_arrays(m, d);
}

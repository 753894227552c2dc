// OpenCV's DNN module as a runner, in C++17.  On Debian: apt-get install libopencv-dnn-dev nlohmann-json3-dev
//   g++ -std=c++17 -O2 opencv_dnn.cpp -o opencv_dnn -I/usr/include/opencv4 -lopencv_dnn -lopencv_core
//   opconform run --dialect onnx --backend 'exec:./opencv_dnn'

#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <opencv2/dnn.hpp>
#include <stdexcept>
#include <string>
#include <vector>

using nlohmann::json;

struct Unsupported : std::runtime_error {  // what the runtime does not take: a declared gap, no failure
  using std::runtime_error::runtime_error;
};

// A message is the byte 0x1E, one line of JSON, and as many bytes as its "payload" says.
struct Message {
  json header;
  std::string payload;
};

static int answers = 1;  // where answers go: what the library prints goes elsewhere, see main

static bool fill(std::string& into, size_t n) {
  char chunk[1 << 16];
  while (into.size() < n) {
    ssize_t got = read(0, chunk, std::min(sizeof chunk, n - into.size()));
    if (got <= 0) return false;
    into.append(chunk, got);
  }
  return true;
}

static bool receive(Message& m) {
  std::string line;
  char c;
  while (read(0, &c, 1) == 1 && c != '\n') line += c;
  if (line.empty()) return false;  // stdin was closed: the end
  m.header = json::parse(line.substr(1));
  m.payload.clear();
  return fill(m.payload, m.header.value("payload", size_t{0}));
}

static void send(json header, const std::string& payload = "") {
  if (!payload.empty()) header["payload"] = payload.size();
  std::string data = "\x1e" + header.dump(-1, ' ', true, json::error_handler_t::replace) + "\n" + payload;
  for (size_t at = 0; at < data.size();) {
    ssize_t put = write(answers, data.data() + at, data.size() - at);
    if (put <= 0) _exit(1);
    at += put;
  }
}

static std::vector<int> extents(const json& form) {
  std::vector<int> shape = form.at("shape").get<std::vector<int>>();
  for (int n : shape)
    if (n == 0) throw Unsupported("a cv::Mat has no extent of 0");
  return shape;
}

struct Model {
  cv::dnn::Net net;

  explicit Model(const std::string& bytes) : net(cv::dnn::readNetFromONNX(bytes.data(), bytes.size())) {
    net.setPreferableBackend(cv::dnn::DNN_BACKEND_OPENCV);
    net.enableFusion(false);
  }

  // -> the result of run; appends the outputs' elements to out
  json run(const json& inputs, const std::string& payload, std::string& out) {
    for (const json& x : inputs) {
      if (x.contains("sequence") || x.contains("map")) throw Unsupported("tensors only");
      if (x.value("absent", false)) continue;
      if (x.at("dtype") != "f32") throw Unsupported("no tensors of type " + x.at("dtype").get<std::string>());
      std::vector<int> shape = extents(x);
      if (shape.empty()) shape = {1};
      cv::Mat blob(shape, CV_32F);
      std::memcpy(blob.data, payload.data() + x.at("offset").get<size_t>(), x.at("bytes").get<size_t>());
      net.setInput(blob, x.at("name").get<std::string>());
    }
    std::vector<cv::Mat> results;
    net.forward(results, net.getUnconnectedOutLayersNames());
    json outputs = json::array();  // without names, which OpenCV replaces by those of its layers: by position
    for (cv::Mat& y : results) {
      if (y.depth() != CV_32F) throw Unsupported("an output that is not f32");
      cv::Mat flat = y.isContinuous() ? y : y.clone();
      std::vector<int> shape(flat.size.p, flat.size.p + flat.dims);
      size_t bytes = flat.total() * flat.elemSize();
      outputs.push_back({{"dtype", "f32"}, {"shape", shape}, {"offset", out.size()}, {"bytes", bytes}});
      out.append(reinterpret_cast<const char*>(flat.data), bytes);
    }
    return {{"outputs", outputs}};
  }
};

int main() {
  answers = dup(1);
  dup2(2, 1);  // whatever the library prints to stdout goes to stderr
  cv::setNumThreads(1);
  std::map<int64_t, Model> models;
  Message m;
  while (receive(m)) {
    json id = m.header.at("id");
    std::string method = m.header.at("method"), out;
    try {
      json result = json::object();
      if (method == "hello") {
        result = {{"name", "opencv-dnn"}, {"version", CV_VERSION}, {"formats", {"onnx"}},
                  {"opsets", {7, 13}},    {"dtypes", {"f32"}},     {"validates", false}, {"flushes", {"f32"}}};
      } else if (method == "load") {
        models.emplace(m.header.at("model").get<int64_t>(), Model(m.payload));
      } else if (method == "run") {
        result = models.at(m.header.at("model")).run(m.header.at("inputs"), m.payload, out);
      } else if (method == "release") {
        models.erase(m.header.at("model").get<int64_t>());
      } else {
        throw Unsupported("method " + method);
      }
      send({{"id", id}, {"result", result}}, out);
    } catch (const Unsupported& e) {
      send({{"id", id}, {"error", {{"kind", "unsupported"}, {"message", e.what()}}}});
    } catch (const std::exception& e) {
      send({{"id", id}, {"error", {{"kind", "rejected"}, {"message", e.what()}}}});
    }
  }
}

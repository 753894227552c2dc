// ONNX Runtime's Java package as a runner:  mvn -q package -f examples/runners/java
//   opconform run --dialect onnx --backend 'exec:java -cp "examples/runners/java/target/*" OrtRunner'
import ai.onnxruntime.OnnxJavaType;
import ai.onnxruntime.OnnxTensor;
import ai.onnxruntime.OnnxValue;
import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtSession;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.json.JSONArray;
import org.json.JSONObject;

public final class OrtRunner {
  /** What the runtime does not take: a declared gap, no failure. */
  static final class Unsupported extends Exception {
    Unsupported(String message) { super(message); }
  }

  // opconform's names of element types, and the runtime's in the same order
  static final List<String> NAMES = List.of("f32", "f64", "f16", "bf16", "i8", "i16", "i32", "i64", "u8", "bool", "str");
  static final List<OnnxJavaType> TYPES = List.of(
      OnnxJavaType.FLOAT, OnnxJavaType.DOUBLE, OnnxJavaType.FLOAT16, OnnxJavaType.BFLOAT16, OnnxJavaType.INT8,
      OnnxJavaType.INT16, OnnxJavaType.INT32, OnnxJavaType.INT64, OnnxJavaType.UINT8, OnnxJavaType.BOOL, OnnxJavaType.STRING);
  static final String GAPS = "(?s).*(not a registered function/op|No Op registered for|only \\*guarantees\\* support).*";

  final OrtEnvironment environment = OrtEnvironment.getEnvironment();
  final Map<Integer, OrtSession> models = new HashMap<>();

  OnnxTensor tensor(JSONObject form, byte[] payload) throws OrtException, Unsupported {
    if (!form.has("shape")) throw new Unsupported("this sample takes tensors only");
    JSONArray extents = form.getJSONArray("shape");
    long[] shape = new long[extents.length()];
    for (int i = 0; i < shape.length; i++) shape[i] = extents.getLong(i);
    if (form.has("strings")) {
      return OnnxTensor.createTensor(environment, form.getJSONArray("strings").toList().toArray(new String[0]), shape);
    }
    int type = NAMES.indexOf(form.getString("dtype"));
    if (type < 0) throw new Unsupported("no tensors of type " + form.getString("dtype"));
    ByteBuffer data = ByteBuffer.allocateDirect(form.getInt("bytes")).order(ByteOrder.nativeOrder());
    data.put(payload, form.getInt("offset"), form.getInt("bytes")).rewind();
    return OnnxTensor.createTensor(environment, data, shape, TYPES.get(type));
  }

  /** A result -> its form; its elements go behind the payload. */
  static JSONObject form(String name, OnnxValue value, ByteArrayOutputStream payload) throws OrtException, Unsupported {
    if (!(value instanceof OnnxTensor tensor)) throw new Unsupported("an output that is no tensor");
    JSONObject form = new JSONObject().put("name", name).put("shape", new JSONArray(tensor.getInfo().getShape()));
    if (tensor.getInfo().type == OnnxJavaType.STRING) {
      return form.put("dtype", "str").put("strings", flat(tensor.getValue(), new JSONArray()));
    }
    int type = TYPES.indexOf(tensor.getInfo().type);
    if (type < 0) throw new Unsupported("an output of type " + tensor.getInfo().onnxType);
    ByteBuffer buffer = tensor.getByteBuffer();
    byte[] data = new byte[buffer.remaining()];
    buffer.get(data);
    form.put("dtype", NAMES.get(type)).put("offset", payload.size()).put("bytes", data.length);
    payload.writeBytes(data);
    return form;
  }

  /** Nested arrays of strings -> the strings in row-major order. */
  static JSONArray flat(Object strings, JSONArray out) {
    if (!(strings instanceof Object[] parts)) return out.put(strings);
    for (Object part : parts) flat(part, out);
    return out;
  }

  JSONObject run(OrtSession session, JSONArray inputs, byte[] payload, ByteArrayOutputStream out)
      throws OrtException, Unsupported {
    Map<String, OnnxTensor> feeds = new HashMap<>();
    JSONArray outputs = new JSONArray();
    try {
      for (Object x : inputs) {
        JSONObject form = (JSONObject) x;
        if (!form.optBoolean("absent")) feeds.put(form.getString("name"), tensor(form, payload));
      }
      try (OrtSession.Result results = session.run(feeds)) {
        for (Map.Entry<String, OnnxValue> r : results) outputs.put(form(r.getKey(), r.getValue(), out));
      }
    } finally {
      feeds.values().forEach(OnnxTensor::close);
    }
    return new JSONObject().put("outputs", outputs);
  }

  JSONObject answer(JSONObject request, byte[] payload, ByteArrayOutputStream out) throws OrtException, Unsupported {
    int model = request.optInt("model");
    switch (request.getString("method")) {
      case "hello":
        return new JSONObject().put("name", "onnxruntime-java").put("version", environment.getVersion())
            .put("formats", List.of("onnx")).put("opsets", List.of(7, 23)).put("family", "onnxruntime")
            .put("dtypes", NAMES).put("pack", 16)
            .put("info", Map.of("java", System.getProperty("java.version")));
      case "load":
        OrtSession.SessionOptions options = new OrtSession.SessionOptions();
        options.setOptimizationLevel(OrtSession.SessionOptions.OptLevel.NO_OPT);
        models.put(model, environment.createSession(payload, options));
        return new JSONObject();
      case "run":
        return run(models.get(model), request.getJSONArray("inputs"), payload, out);
      case "release":
        models.remove(model).close();
        return new JSONObject();
      default:
        throw new Unsupported("method " + request.getString("method"));
    }
  }

  static JSONObject error(Exception e) {
    String message = String.valueOf(e.getMessage());
    boolean gap = e instanceof Unsupported || message.matches(GAPS)
        || e instanceof OrtException o && o.getCode() == OrtException.OrtErrorCode.ORT_NOT_IMPLEMENTED;
    return new JSONObject().put("kind", gap ? "unsupported" : "rejected").put("message", message);
  }

  public static void main(String[] arguments) throws IOException {
    OutputStream answers = System.out;
    System.setOut(System.err); // whatever libraries print goes to stderr
    DataInputStream requests = new DataInputStream(System.in);
    OrtRunner runner = new OrtRunner();
    while (requests.read() == 0x1E) {
      ByteArrayOutputStream line = new ByteArrayOutputStream();
      for (int c = requests.read(); c != '\n'; c = requests.read()) line.write(c);
      JSONObject request = new JSONObject(line.toString(StandardCharsets.UTF_8));
      byte[] payload = requests.readNBytes(request.optInt("payload"));
      ByteArrayOutputStream out = new ByteArrayOutputStream();
      JSONObject message = new JSONObject().put("id", request.getLong("id"));
      try {
        message.put("result", runner.answer(request, payload, out));
      } catch (OrtException | Unsupported | RuntimeException e) {
        message.put("error", error(e));
        out.reset();
      }
      if (out.size() > 0) message.put("payload", out.size());
      answers.write(0x1E);
      answers.write((message + "\n").getBytes(StandardCharsets.UTF_8));
      out.writeTo(answers);
      answers.flush();
    }
  }
}

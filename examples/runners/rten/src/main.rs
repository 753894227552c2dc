//! RTen as a runner, in Rust:  cargo build --release
//!   opconform run --dialect onnx --backend 'exec:examples/runners/rten/target/release/rten-runner'

use rten::{Model, ModelOptions, NodeId, Value, ValueOrView};
use rten_tensor::{AsView, Layout};
use serde_json::{json, Value as Json};
use std::collections::HashMap;
use std::io::{self, BufRead, Write};

/// What went wrong with a request: a declared gap, or a refusal.
enum Fault {
    Unsupported(String),
    Rejected(String),
}

fn unsupported<T>(text: impl Into<String>) -> Result<T, Fault> {
    Err(Fault::Unsupported(text.into()))
}

/// The runtime's own words: what it has no operator or type for is a gap.
fn told(e: impl std::fmt::Display) -> Fault {
    let text = e.to_string();
    let gaps = ["not supported", "unsupported", "not available", "not implemented", "unknown operator"];
    match gaps.iter().any(|g| text.to_lowercase().contains(g)) {
        true => Fault::Unsupported(text),
        false => Fault::Rejected(text),
    }
}

/// A message is the byte 0x1E, one line of JSON, and as many bytes as its "payload" says.
fn receive(input: &mut impl BufRead) -> io::Result<Option<(Json, Vec<u8>)>> {
    let mut line = Vec::new();
    if input.read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    let header: Json = serde_json::from_slice(&line[1..])?;
    let mut payload = vec![0; header["payload"].as_u64().unwrap_or(0) as usize];
    input.read_exact(&mut payload)?;
    Ok(Some((header, payload)))
}

fn send(out: &mut impl Write, mut header: Json, payload: &[u8]) -> io::Result<()> {
    if !payload.is_empty() {
        header["payload"] = json!(payload.len());
    }
    out.write_all(b"\x1e")?;
    serde_json::to_writer(&mut *out, &header)?;
    out.write_all(b"\n")?;
    out.write_all(payload)?;
    out.flush()
}

fn extents(form: &Json) -> Vec<usize> {
    form["shape"].as_array().into_iter().flatten().map(|n| n.as_u64().unwrap_or(0) as usize).collect()
}

fn value(form: &Json, payload: &[u8]) -> Result<Value, Fault> {
    let (Some(offset), Some(size)) = (form["offset"].as_u64(), form["bytes"].as_u64()) else {
        return unsupported("this sample takes tensors of numbers only");
    };
    let (shape, data) = (extents(form), &payload[offset as usize..(offset + size) as usize]);
    match form["dtype"].as_str() {
        Some("f32") => {
            let x: Vec<f32> = data.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect();
            Value::from_shape(&shape[..], x).map_err(told)
        }
        Some("i32") => {
            let x: Vec<i32> = data.chunks_exact(4).map(|b| i32::from_le_bytes(b.try_into().unwrap())).collect();
            Value::from_shape(&shape[..], x).map_err(told)
        }
        Some("i8") => Value::from_shape(&shape[..], data.iter().map(|&b| b as i8).collect::<Vec<_>>()).map_err(told),
        Some("u8") => Value::from_shape(&shape[..], data.to_vec()).map_err(told),
        other => unsupported(format!("no tensors of type {}", other.unwrap_or("?"))),
    }
}

fn run(model: &Model, inputs: &Json, payload: &[u8], out: &mut Vec<u8>) -> Result<Json, Fault> {
    let mut feeds: Vec<(NodeId, ValueOrView)> = Vec::new();
    for x in inputs.as_array().into_iter().flatten().filter(|x| x["absent"] != true) {
        let id = model.node_id(x["name"].as_str().unwrap_or("")).map_err(told)?;
        feeds.push((id, value(x, payload)?.into()));
    }
    let ids = model.output_ids().to_vec();
    let results = model.run(feeds, &ids, None).map_err(told)?;
    let mut outputs = Vec::new();
    for (id, y) in ids.iter().zip(results) {
        let offset = out.len();
        let (dtype, shape) = match y {
            Value::FloatTensor(t) => {
                t.iter().for_each(|x| out.extend(x.to_le_bytes()));
                ("f32", t.shape().to_vec())
            }
            Value::Int32Tensor(t) => {
                t.iter().for_each(|x| out.extend(x.to_le_bytes()));
                ("i32", t.shape().to_vec())
            }
            Value::Int8Tensor(t) => {
                t.iter().for_each(|x| out.push(*x as u8));
                ("i8", t.shape().to_vec())
            }
            Value::UInt8Tensor(t) => {
                t.iter().for_each(|x| out.push(*x));
                ("u8", t.shape().to_vec())
            }
            _ => return unsupported("an output that is no tensor"),
        };
        let name = model.node_info(*id).and_then(|n| n.name().map(String::from));
        outputs.push(json!({"name": name, "dtype": dtype, "shape": shape, "offset": offset,
                            "bytes": out.len() - offset}));
    }
    Ok(json!({ "outputs": outputs }))
}

fn answer(models: &mut HashMap<u64, Model>, header: &Json, payload: Vec<u8>) -> Result<(Json, Vec<u8>), Fault> {
    let number = header["model"].as_u64().unwrap_or(0);
    let mut out = Vec::new();
    let result = match header["method"].as_str() {
        Some("hello") => json!({"name": "rten", "version": "0.27", "formats": ["onnx"],
                                "dtypes": ["f32", "i32", "i8", "u8"], "validates": false}),
        Some("load") => {
            let model = ModelOptions::with_all_ops().enable_optimization(false).load(payload).map_err(told)?;
            models.insert(number, model);
            json!({})
        }
        Some("run") => run(&models[&number], &header["inputs"], &payload, &mut out)?,
        Some("release") => {
            models.remove(&number);
            json!({})
        }
        other => return unsupported(format!("method {other:?}")),
    };
    Ok((result, out))
}

fn main() -> io::Result<()> {
    let (mut input, mut output) = (io::stdin().lock(), io::BufWriter::new(io::stdout().lock()));
    let mut models = HashMap::new();
    while let Some((header, payload)) = receive(&mut input)? {
        let id = &header["id"];
        let (reply, out) = match answer(&mut models, &header, payload) {
            Ok((result, out)) => (json!({"id": id, "result": result}), out),
            Err(Fault::Unsupported(t)) => (json!({"id": id, "error": {"kind": "unsupported", "message": t}}), vec![]),
            Err(Fault::Rejected(t)) => (json!({"id": id, "error": {"kind": "rejected", "message": t}}), vec![]),
        };
        send(&mut output, reply, &out)?;
    }
    Ok(())
}

// gonnx as a runner, in Go:  go build
//
//	opconform run --dialect onnx --backend 'exec:examples/runners/gonnx/gonnx-runner'
package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"

	"github.com/advancedclimatesystems/gonnx"
	"gorgonia.org/tensor"
)

// errUnsupported is what the runtime does not take: a declared gap, no failure.
var errUnsupported = errors.New("unsupported")

type form struct {
	Name   string `json:"name"`
	Dtype  string `json:"dtype"`
	Shape  []int  `json:"shape"`
	Offset int    `json:"offset"`
	Bytes  int    `json:"bytes"`
	Absent bool   `json:"absent,omitempty"`
}

type request struct {
	ID      int    `json:"id"`
	Method  string `json:"method"`
	Model   int    `json:"model"`
	Inputs  []form `json:"inputs"`
	Payload int    `json:"payload"`
}

var types = map[string]any{
	"f32": float32(0), "f64": float64(0), "i8": int8(0), "i16": int16(0), "i32": int32(0), "i64": int64(0),
	"u8": uint8(0), "u16": uint16(0), "u32": uint32(0), "u64": uint64(0), "bool": false,
}

func value(f form, payload []byte) (tensor.Tensor, error) {
	zero, ok := types[f.Dtype]
	if !ok {
		return nil, fmt.Errorf("%w: tensors of %s", errUnsupported, f.Dtype)
	}
	data := reflect.New(reflect.SliceOf(reflect.TypeOf(zero))).Elem()
	n := 1
	for _, extent := range f.Shape {
		n *= extent
	}
	data.Set(reflect.MakeSlice(data.Type(), n, n))
	if err := binary.Read(bytes.NewReader(payload[f.Offset:f.Offset+f.Bytes]), binary.LittleEndian, data.Interface()); err != nil {
		return nil, err
	}
	if len(f.Shape) == 0 {
		return tensor.New(tensor.FromScalar(data.Index(0).Interface())), nil
	}
	return tensor.New(tensor.WithShape(f.Shape...), tensor.WithBacking(data.Interface())), nil
}

// run gives the outputs in the order of the model.  A panic of the runtime is a refusal.
func run(model *gonnx.Model, r request, payload []byte) (forms []form, out bytes.Buffer, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	feeds := gonnx.Tensors{}
	for _, f := range r.Inputs {
		if f.Absent {
			return nil, out, fmt.Errorf("%w: optional values", errUnsupported)
		}
		if feeds[f.Name], err = value(f, payload); err != nil {
			return nil, out, err
		}
	}
	results, err := model.Run(feeds)
	if err != nil {
		return nil, out, err
	}
	for _, name := range model.OutputNames() {
		y := results[name].(*tensor.Dense).Materialize()
		data, f := y.Data(), form{Name: name, Shape: append([]int{}, y.Shape()...), Offset: out.Len()}
		for short, zero := range types {
			if y.Dtype().Type == reflect.TypeOf(zero) {
				f.Dtype = short
			}
		}
		if err = binary.Write(&out, binary.LittleEndian, data); err != nil {
			return nil, out, err
		}
		f.Bytes = out.Len() - f.Offset
		forms = append(forms, f)
	}
	return forms, out, nil
}

func answer(models map[int]*gonnx.Model, r request, payload []byte) (any, []byte, error) {
	switch r.Method {
	case "hello":
		dtypes := []string{}
		for short := range types {
			dtypes = append(dtypes, short)
		}
		return map[string]any{"name": "gonnx", "version": "1.1.0", "formats": []string{"onnx"}, "opsets": []int{13, 13},
			"dtypes": dtypes, "validates": false}, nil, nil
	case "load":
		model, err := gonnx.NewModelFromBytes(payload)
		models[r.Model] = model
		return map[string]any{}, nil, err
	case "run":
		forms, out, err := run(models[r.Model], r, payload)
		return map[string]any{"outputs": forms}, out.Bytes(), err
	case "release":
		delete(models, r.Model)
		return map[string]any{}, nil, nil
	}
	return nil, nil, fmt.Errorf("%w: method %s", errUnsupported, r.Method)
}

func main() {
	in, out, models := bufio.NewReader(os.Stdin), bufio.NewWriter(os.Stdout), map[int]*gonnx.Model{}
	for {
		line, err := in.ReadBytes('\n') // a message: the byte 0x1E, a line of JSON, as many bytes as "payload" says
		if err != nil {
			return
		}
		var r request
		if err = json.Unmarshal(line[1:], &r); err != nil {
			panic(err)
		}
		payload := make([]byte, r.Payload)
		if _, err = io.ReadFull(in, payload); err != nil {
			return
		}
		result, raw, err := answer(models, r, payload)
		reply := map[string]any{"id": r.ID, "result": result, "payload": len(raw)}
		if err != nil {
			raw = nil
			reply = map[string]any{"id": r.ID, "error": map[string]any{"kind": kind(err), "message": err.Error()}}
		}
		header, _ := json.Marshal(reply)
		fmt.Fprintf(out, "\x1e%s\n", header)
		out.Write(raw)
		out.Flush()
	}
}

// kind sorts the runtime's own words: an operator, a type or an attribute that it does not have is a gap.
func kind(err error) string {
	for _, gap := range []string{"unsupported", "unknown operator", "does not allow dtype", "not supported", "not implemented"} {
		if strings.Contains(strings.ToLower(err.Error()), gap) {
			return "unsupported"
		}
	}
	return "rejected"
}

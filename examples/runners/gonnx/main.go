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
	"regexp"

	"github.com/advancedclimatesystems/gonnx"
	"gorgonia.org/tensor"
)

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

var names = map[reflect.Type]string{}

func value(f form, payload []byte) (tensor.Tensor, error) {
	zero, ok := types[f.Dtype]
	if !ok {
		return nil, fmt.Errorf("unsupported: tensors of %s", f.Dtype)
	}
	n := f.Bytes / int(reflect.TypeOf(zero).Size())
	data := reflect.MakeSlice(reflect.SliceOf(reflect.TypeOf(zero)), n, n)
	raw := bytes.NewReader(payload[f.Offset : f.Offset+f.Bytes])
	if err := binary.Read(raw, binary.LittleEndian, data.Interface()); err != nil {
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
			return nil, out, errors.New("unsupported: optional values")
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
		f.Dtype = names[y.Dtype().Type]
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
		for short, zero := range types {
			dtypes, names[reflect.TypeOf(zero)] = append(dtypes, short), short
		}
		return map[string]any{"name": "gonnx", "version": "1.1.0", "formats": []string{"onnx"}, "opsets": []int{13, 13},
			"dtypes": dtypes, "validates": false, "limits": map[string]any{"empty": false}}, nil, nil
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
	return nil, nil, fmt.Errorf("unsupported: method %s", r.Method)
}

func main() {
	in, out, models := bufio.NewReader(os.Stdin), bufio.NewWriter(os.Stdout), map[int]*gonnx.Model{}
	for {
		line, err := in.ReadBytes('\n') // a message: the byte 0x1E, a line of JSON, as many bytes as "payload" says
		var r request
		if err != nil || json.Unmarshal(line[1:], &r) != nil {
			return
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

// The runtime's own words: an operator, a type or an attribute that it does not have is a gap.
var gaps = regexp.MustCompile("(?i)unsupported|unknown operator|does not allow dtype|not supported|not implemented")

func kind(err error) string {
	return map[bool]string{true: "unsupported", false: "rejected"}[gaps.MatchString(err.Error())]
}

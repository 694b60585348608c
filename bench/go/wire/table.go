package main

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Table is what a reader of messages has to know.
type Table struct {
	// The message of each kind, by APIVERSION/KIND.
	Kinds map[string]string `json:"kinds"`
	// The fields of each message, in the order of JSON.
	Messages map[string][]Field `json:"messages"`
}

// Field is number, name, type, shape ("", "*" a pointer, "[]", "{}", "<" inline) and when JSON leaves it out ("", "e" empty, "z" zero).
type Field [5]any

// Messages whose JSON is something else than an object of their fields.
var special = map[reflect.Type]string{
	reflect.TypeFor[resource.Quantity]():                            "quantity",
	reflect.TypeFor[metav1.Time]():                                  "time",
	reflect.TypeFor[metav1.MicroTime]():                             "microTime",
	reflect.TypeFor[intstr.IntOrString]():                           "intOrString",
	reflect.TypeFor[runtime.RawExtension]():                         "raw",
	reflect.TypeFor[metav1.FieldsV1]():                              "raw",
	reflect.TypeFor[apiextensionsv1.JSON]():                         "raw",
	reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrArray]():       "schemaOrArray",
	reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrBool]():        "schemaOrBool",
	reflect.TypeFor[apiextensionsv1.JSONSchemaPropsOrStringArray](): "schemaOrStrings",
}

func tableOf(kinds []schema.GroupVersionKind) Table {
	table := Table{Kinds: map[string]string{}, Messages: map[string][]Field{}}
	for _, kind := range kinds {
		version, name := kind.ToAPIVersionAndKind()
		table.Kinds[version+"/"+name] = table.typeOf(reflect.TypeOf(newOf(kind)).Elem())
	}
	return table
}

// The name of a type; what it consists of is put into the table.
func (t Table) typeOf(of reflect.Type) string {
	if name, ok := special[of]; ok {
		if strings.HasPrefix(name, "schema") {
			t.typeOf(reflect.TypeFor[apiextensionsv1.JSONSchemaProps]())
		}
		return name
	}
	switch of.Kind() {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "bool"
	case reflect.Int32, reflect.Int64:
		return "int"
	case reflect.Float64:
		return "double"
	case reflect.Slice:
		if of.Elem().Kind() == reflect.Uint8 {
			return "bytes"
		}
		// A named list is a message of its own, as in a map.
		if of.Name() != "" && of.Elem().Kind() == reflect.String {
			return "strings"
		}
	case reflect.Struct:
		return t.message(of)
	}
	panic(fmt.Sprintf("%s has a form that is not known here", of))
}

func (t Table) message(of reflect.Type) string {
	path := strings.Split(of.PkgPath(), "/")
	name := strings.Join(path[len(path)-2:], "/") + "." + of.Name()
	if _, known := t.Messages[name]; known {
		return name
	}
	t.Messages[name] = nil
	fields := []Field{}
	for i := range of.NumField() {
		field := of.Field(i)
		tag, ok := field.Tag.Lookup("protobuf")
		if !ok {
			continue
		}
		number, err := strconv.Atoi(strings.Split(tag, ",")[1])
		if err != nil {
			panic(err)
		}
		names := strings.Split(field.Tag.Get("json"), ",")
		shape, element := shapeOf(field.Type)
		if field.Anonymous && names[0] == "" {
			shape = "<"
		}
		omit := ""
		for _, option := range names[1:] {
			switch option {
			case "omitempty":
				omit += "e"
			case "omitzero":
				omit += "z"
			}
		}
		fields = append(fields, Field{number, names[0], t.typeOf(element), shape, omit})
	}
	t.Messages[name] = fields
	return name
}

func shapeOf(of reflect.Type) (string, reflect.Type) {
	switch {
	case of.Kind() == reflect.Pointer:
		return "*", of.Elem()
	case of.Kind() == reflect.Map:
		return "{}", of.Elem()
	case of.Kind() == reflect.Slice && of.Elem().Kind() != reflect.Uint8:
		element := of.Elem()
		if element.Kind() == reflect.Pointer {
			element = element.Elem()
		}
		return "[]", element
	}
	return "", of
}

package main

import (
	"bytes"
	"encoding/json"
	"math/rand"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/intstr"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/randfill"
)

// Sample is one object in both forms.
type Sample struct {
	Kind  schema.GroupVersionKind `json:"kind"`
	Seed  int64                   `json:"seed"`
	Bytes []byte                  `json:"bytes"`
	// As whoever reads the bytes sees it: they do not tell an empty list from none.
	Object json.RawMessage `json:"object"`
}

func sampleOf(kind schema.GroupVersionKind, seed int64) Sample {
	object := newOf(kind)
	filler(seed).Fill(object)
	object.GetObjectKind().SetGroupVersionKind(kind)

	wire := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	var encoded bytes.Buffer
	utilruntime.Must(wire.Encode(object, &encoded))
	read, _, err := wire.Decode(encoded.Bytes(), nil, nil)
	utilruntime.Must(err)
	read.GetObjectKind().SetGroupVersionKind(kind)
	text, err := json.Marshal(read)
	utilruntime.Must(err)
	return Sample{Kind: kind, Seed: seed, Bytes: encoded.Bytes(), Object: text}
}

// What is anybody's in JSON is JSON here, and numbers are those that JSON can say.
func filler(seed int64) *randfill.Filler {
	source := rand.New(rand.NewSource(seed))
	anything := func() []byte {
		return [][]byte{[]byte(`{"a":{"b":[1,"ü",null]}}`), []byte(`"text"`), []byte(`[true]`), []byte(`{}`)}[source.Intn(4)]
	}
	return randfill.NewWithSeed(seed).NilChance(0.4).NumElements(0, 2).MaxDepth(12).Funcs(
		func(text *string, _ randfill.Continue) { *text = []string{"", "a", "b/c", "ü\n"}[source.Intn(4)] },
		func(number *int64, _ randfill.Continue) {
			*number = []int64{0, 1, -1, 1 << 40, -(1 << 52)}[source.Intn(5)]
		},
		func(number *float64, _ randfill.Continue) { *number = []float64{0, 0.5, -1e21}[source.Intn(3)] },
		func(quantity *resource.Quantity, _ randfill.Continue) {
			*quantity = resource.MustParse([]string{"0", "1500m", "2Gi", "1e3"}[source.Intn(4)])
		},
		func(at *metav1.Time, _ randfill.Continue) {
			*at = []metav1.Time{{}, metav1.Unix(0, 0), metav1.Unix(1700000000, 5), metav1.Unix(-62000000000, 0)}[source.Intn(4)]
		},
		func(at *metav1.MicroTime, _ randfill.Continue) {
			times := []time.Time{time.Unix(0, 0), time.Unix(1700000000, 123456000), time.Unix(1, 1000)}
			*at = append([]metav1.MicroTime{{}}, metav1.NewMicroTime(times[source.Intn(3)]))[source.Intn(2)]
		},
		func(number *intstr.IntOrString, _ randfill.Continue) {
			*number = []intstr.IntOrString{intstr.FromInt32(0), intstr.FromInt32(-7), intstr.FromString("50%"), intstr.FromString("")}[source.Intn(4)]
		},
		func(raw *runtime.RawExtension, _ randfill.Continue) { raw.Raw = anything() },
		func(raw *metav1.FieldsV1, _ randfill.Continue) { raw.SetRawBytes(anything()) },
		func(raw *apiextensionsv1.JSON, _ randfill.Continue) { raw.Raw = anything() },
		func(value *apiextensionsv1.JSONSchemaPropsOrBool, c randfill.Continue) {
			*value = apiextensionsv1.JSONSchemaPropsOrBool{Allows: source.Intn(2) == 0}
			if source.Intn(2) == 0 {
				*value = apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: &apiextensionsv1.JSONSchemaProps{Type: "string"}}
			}
		},
		func(value *apiextensionsv1.JSONSchemaPropsOrArray, c randfill.Continue) {
			*value = apiextensionsv1.JSONSchemaPropsOrArray{Schema: &apiextensionsv1.JSONSchemaProps{Type: "string"}}
			if source.Intn(2) == 0 {
				*value = apiextensionsv1.JSONSchemaPropsOrArray{JSONSchemas: []apiextensionsv1.JSONSchemaProps{{Type: "string"}, {}}}
			}
		},
		func(value *apiextensionsv1.JSONSchemaPropsOrStringArray, c randfill.Continue) {
			*value = apiextensionsv1.JSONSchemaPropsOrStringArray{Schema: &apiextensionsv1.JSONSchemaProps{Type: "string"}}
			if source.Intn(2) == 0 {
				*value = apiextensionsv1.JSONSchemaPropsOrStringArray{Property: []string{"a", ""}}
			}
		},
	)
}

// What Kubernetes' own types say of their protobuf form, for the embedded API server and its tests. Kinds come on standard
// input, a line each: APIVERSION KIND.
//
//	wire table       the messages they consist of: each field's number, its name in JSON, type and shape
//	wire samples N   N random objects of each kind, with seeds from 1: both forms, as a client sends them
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

func main() {
	utilruntime.Must(apiextensionsv1.AddToScheme(scheme.Scheme))
	kinds := readKinds()
	switch os.Args[1] {
	case "table":
		print(tableOf(kinds))
	case "samples":
		n, err := strconv.Atoi(os.Args[2])
		utilruntime.Must(err)
		for _, kind := range kinds {
			for seed := 1; seed <= n; seed++ {
				print(sampleOf(kind, int64(seed)))
			}
		}
	}
}

func readKinds() []schema.GroupVersionKind {
	var kinds []schema.GroupVersionKind
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		version, kind, _ := strings.Cut(lines.Text(), " ")
		kinds = append(kinds, schema.FromAPIVersionAndKind(version, kind))
	}
	return kinds
}

func newOf(kind schema.GroupVersionKind) runtime.Object {
	object, err := scheme.Scheme.New(kind)
	utilruntime.Must(err)
	return object
}

func print(value any) {
	text, err := json.Marshal(value)
	utilruntime.Must(err)
	fmt.Println(string(text))
}

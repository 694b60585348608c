package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Stack is stacks.bench.example.com/v1.
type Stack struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              StackSpec   `json:"spec"`
	Status            StackStatus `json:"status,omitempty"`
}

// StackSpec is what is asked for.
type StackSpec struct {
	Image    string `json:"image"`
	Replicas int32  `json:"replicas"`
	Message  string `json:"message"`
	Password string `json:"password"`
}

// StackStatus is what was seen to.
type StackStatus struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

// StackList is a list of Stacks.
type StackList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Stack `json:"items"`
}

// DeepCopyInto copies the status; of its conditions, all fields are flat.
func (s *StackStatus) DeepCopyInto(out *StackStatus) {
	*out = *s
	out.Conditions = append([]metav1.Condition(nil), s.Conditions...)
}

// DeepCopyInto copies the Stack; its spec is flat.
func (s *Stack) DeepCopyInto(out *Stack) {
	*out = *s
	s.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	s.Status.DeepCopyInto(&out.Status)
}

// DeepCopyObject implements runtime.Object.
func (s *Stack) DeepCopyObject() runtime.Object {
	out := new(Stack)
	s.DeepCopyInto(out)
	return out
}

// DeepCopyObject implements runtime.Object.
func (l *StackList) DeepCopyObject() runtime.Object {
	out := &StackList{TypeMeta: l.TypeMeta, Items: make([]Stack, len(l.Items))}
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	for i := range l.Items {
		l.Items[i].DeepCopyInto(&out.Items[i])
	}
	return out
}

func addToScheme(scheme *runtime.Scheme) error {
	version := schema.GroupVersion{Group: "bench.example.com", Version: "v1"}
	scheme.AddKnownTypes(version, &Stack{}, &StackList{})
	metav1.AddToGroupVersion(scheme, version)
	return nil
}

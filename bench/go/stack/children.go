package main

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// child is an object by its name alone, and what makes it as the Stack wishes.
type child struct {
	object client.Object
	mutate func()
}

// children are the ten of a Stack.
func (r *StackReconciler) children(stack *Stack) []child {
	spec := stack.Spec
	return []child{
		configMap(stack, "settings", map[string]string{"message": spec.Message, "level": "info"}),
		configMap(stack, "scripts", map[string]string{"start.sh": "#!/bin/sh\nexec /server --settings /settings\n"}),
		configMap(stack, "dashboards", map[string]string{"overview.json": `{"title":"Overview","panels":[]}`}),
		secret(stack, "credentials", map[string][]byte{"user": []byte("stack"), "password": []byte(spec.Password)}),
		secret(stack, "tokens", map[string][]byte{"session": []byte("a token for sessions")}),
		r.service(stack, "web", 80, false),
		r.service(stack, "store", 5432, true),
		r.deployment(stack, "web", 8080, spec.Replicas),
		r.deployment(stack, "worker", 9090, 1),
		r.statefulSet(stack, "store", 5432),
	}
}

func meta(stack *Stack, part string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: stack.Namespace, Name: stack.Name + "-" + part}
}

func labels(stack *Stack, part string) map[string]string {
	return map[string]string{"app.kubernetes.io/name": part, "app.kubernetes.io/instance": stack.Name}
}

func configMap(stack *Stack, part string, data map[string]string) child {
	object := &corev1.ConfigMap{ObjectMeta: meta(stack, part)}
	return child{object, func() {
		object.Labels = labels(stack, part)
		object.Data = data
	}}
}

func secret(stack *Stack, part string, data map[string][]byte) child {
	object := &corev1.Secret{ObjectMeta: meta(stack, part)}
	return child{object, func() {
		object.Labels = labels(stack, part)
		object.Data = data
	}}
}

func (r *StackReconciler) service(stack *Stack, part string, port int32, headless bool) child {
	object := &corev1.Service{ObjectMeta: meta(stack, part)}
	return child{object, func() {
		object.Labels = labels(stack, part)
		object.Spec.Selector = labels(stack, part)
		object.Spec.Ports = []corev1.ServicePort{{Name: "main", Port: port, TargetPort: intstr.FromString("main")}}
		if headless {
			object.Spec.ClusterIP = corev1.ClusterIPNone
		}
		if r.SpellOut {
			object.Spec.Ports[0].Protocol = corev1.ProtocolTCP
		}
	}}
}

func (r *StackReconciler) deployment(stack *Stack, part string, port, replicas int32) child {
	object := &appsv1.Deployment{ObjectMeta: meta(stack, part)}
	return child{object, func() {
		object.Labels = labels(stack, part)
		object.Spec.Replicas = ptr.To(replicas)
		object.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels(stack, part)}
		object.Spec.Template = r.template(stack, part, stack.Spec.Image, port)
	}}
}

func (r *StackReconciler) statefulSet(stack *Stack, part string, port int32) child {
	object := &appsv1.StatefulSet{ObjectMeta: meta(stack, part)}
	return child{object, func() {
		object.Labels = labels(stack, part)
		object.Spec.Replicas = ptr.To[int32](1)
		object.Spec.ServiceName = stack.Name + "-" + part
		object.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels(stack, part)}
		object.Spec.Template = r.template(stack, part, "example.com/store:1", port)
		// It cannot be changed later.
		if object.CreationTimestamp.IsZero() {
			object.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{
				ObjectMeta: metav1.ObjectMeta{Name: "data"},
				Spec: corev1.PersistentVolumeClaimSpec{
					AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
					Resources: corev1.VolumeResourceRequirements{
						Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
					},
				},
			}}
		}
	}}
}

func (r *StackReconciler) template(stack *Stack, part, image string, port int32) corev1.PodTemplateSpec {
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels(stack, part)},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{
				Name:  part,
				Image: image,
				Env: []corev1.EnvVar{{
					Name: "PASSWORD",
					ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
						LocalObjectReference: corev1.LocalObjectReference{Name: stack.Name + "-credentials"},
						Key:                  "password",
					}},
				}},
				Ports: []corev1.ContainerPort{{Name: "main", ContainerPort: port}},
				ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{
					HTTPGet: &corev1.HTTPGetAction{Path: "/ready", Port: intstr.FromString("main")},
				}},
				Resources: corev1.ResourceRequirements{
					Requests: corev1.ResourceList{
						corev1.ResourceCPU:    resource.MustParse("100m"),
						corev1.ResourceMemory: resource.MustParse("64Mi"),
					},
					Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("128Mi")},
				},
				VolumeMounts: []corev1.VolumeMount{{Name: "settings", MountPath: "/settings"}},
			}},
			Volumes: []corev1.Volume{{
				Name: "settings",
				VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
					LocalObjectReference: corev1.LocalObjectReference{Name: stack.Name + "-settings"},
				}},
			}},
		},
	}
	if r.SpellOut {
		spellOut(&template.Spec)
	}
	return template
}

// spellOut writes every default that the server would fill in, so that what is wished equals what is there.
func spellOut(pod *corev1.PodSpec) {
	pod.RestartPolicy = corev1.RestartPolicyAlways
	pod.DNSPolicy = corev1.DNSClusterFirst
	pod.SchedulerName = corev1.DefaultSchedulerName
	pod.TerminationGracePeriodSeconds = ptr.To[int64](corev1.DefaultTerminationGracePeriodSeconds)
	pod.SecurityContext = &corev1.PodSecurityContext{}
	pod.Volumes[0].ConfigMap.DefaultMode = ptr.To(corev1.ConfigMapVolumeSourceDefaultMode)
	container := &pod.Containers[0]
	container.ImagePullPolicy = corev1.PullIfNotPresent
	container.TerminationMessagePath = corev1.TerminationMessagePathDefault
	container.TerminationMessagePolicy = corev1.TerminationMessageReadFile
	container.Ports[0].Protocol = corev1.ProtocolTCP
	probe := container.ReadinessProbe
	probe.HTTPGet.Scheme = corev1.URISchemeHTTP
	probe.TimeoutSeconds, probe.PeriodSeconds, probe.SuccessThreshold, probe.FailureThreshold = 1, 10, 1, 3
}

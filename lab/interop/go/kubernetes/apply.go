package main

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	appsapply "k8s.io/client-go/applyconfigurations/apps/v1"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	metaapply "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/openshift-hyperfleet/pull-secret/lab/interop/go/internal/check"
)

// as returns the options of a manager that forces nothing.
func as(manager string) metav1.ApplyOptions { return metav1.ApplyOptions{FieldManager: manager} }

// apply lets two managers own fields of the same objects.
func (s *story) apply(ctx context.Context) {
	maps := s.CoreV1().ConfigMaps(s.namespace)
	wanted := coreapply.ConfigMap("shared", s.namespace).WithData(map[string]string{"colour": "blue", "size": "1"})
	created := check.Must(maps.Apply(ctx, wanted, as("one")))
	again := check.Must(maps.Apply(ctx, wanted, as("one")))
	check.Equal(again.ResourceVersion, created.ResourceVersion)

	red := coreapply.ConfigMap("shared", s.namespace).WithData(map[string]string{"colour": "red"})
	_, err := maps.Apply(ctx, red, as("two"))
	check.Equal(conflicts(err), []string{".data.colour"})
	force := as("two")
	force.Force = true
	forced := check.Must(maps.Apply(ctx, red, force))
	check.Equal(forced.Data, map[string]string{"colour": "red", "size": "1"})

	// Each manager finds its own fields; one that it no longer applies is removed.
	ours := check.Must(coreapply.ExtractConfigMap(forced, "one"))
	check.Equal(ours.Data, map[string]string{"size": "1"})
	theirs := check.Must(coreapply.ExtractConfigMap(forced, "two"))
	check.Equal(theirs.Data, map[string]string{"colour": "red"})
	ours.Data = nil
	check.Equal(check.Must(maps.Apply(ctx, ours, as("one"))).Data, map[string]string{"colour": "red"})
	check.Equal(check.Must(maps.Get(ctx, "shared", metav1.GetOptions{})).Data, map[string]string{"colour": "red"})

	s.applyLists(ctx)
	s.applyDynamically(ctx)
}

// conflicts returns the fields that another manager owns.
func conflicts(err error) (fields []string) {
	check.That(apierrors.IsConflict(err), "a conflict was expected, not %v", err)
	var status apierrors.APIStatus
	check.That(errors.As(err, &status), "%v", err)
	for _, cause := range status.Status().Details.Causes {
		check.Equal(cause.Type, metav1.CauseTypeFieldManagerConflict)
		fields = append(fields, cause.Field)
	}
	return fields
}

// applyLists lets two managers own items of one list, which are told apart by their keys.
func (s *story) applyLists(ctx context.Context) {
	variables := func(pairs ...string) *appsapply.DaemonSetApplyConfiguration {
		container := coreapply.Container().WithName("main")
		for i := 0; i < len(pairs); i += 2 {
			container.WithEnv(coreapply.EnvVar().WithName(pairs[i]).WithValue(pairs[i+1]))
		}
		template := coreapply.PodTemplateSpec().WithSpec(coreapply.PodSpec().WithContainers(container))
		return appsapply.DaemonSet("agent", s.namespace).WithSpec(appsapply.DaemonSetSpec().WithTemplate(template))
	}
	sets := s.AppsV1().DaemonSets(s.namespace)
	wanted := variables("MODE", "fast")
	wanted.Spec.WithSelector(metaapply.LabelSelector().WithMatchLabels(map[string]string{"app": "agent"}))
	wanted.Spec.Template.WithLabels(map[string]string{"app": "agent"})
	wanted.Spec.Template.Spec.Containers[0].WithImage("registry.example.com/agent:1")
	check.Must(sets.Apply(ctx, wanted, as("one")))
	both := check.Must(sets.Apply(ctx, variables("LEVEL", "debug"), as("two")))
	check.Equal(environment(both.Spec.Template.Spec), map[string]string{"MODE": "fast", "LEVEL": "debug"})
	theirs := check.Must(appsapply.ExtractDaemonSet(both, "two"))
	check.Equal(*theirs.Spec.Template.Spec.Containers[0].Env[0].Name, "LEVEL")
	left := check.Must(sets.Apply(ctx, variables(), as("two")))
	check.Equal(environment(left.Spec.Template.Spec), map[string]string{"MODE": "fast"})
}

func environment(pod corev1.PodSpec) map[string]string {
	values := map[string]string{}
	for _, variable := range pod.Containers[0].Env {
		values[variable.Name] = variable.Value
	}
	return values
}

// applyDynamically applies without Go types.
func (s *story) applyDynamically(ctx context.Context) {
	resource := corev1.SchemeGroupVersion.WithResource("secrets")
	secrets := check.Must(dynamic.NewForConfig(s.config)).Resource(resource).Namespace(s.namespace)
	wanted := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "dynamic"}, "stringData": map[string]any{"key": "value"},
	}}
	applied := check.Must(secrets.Apply(ctx, "dynamic", wanted, as("one")))
	value, _, err := unstructured.NestedString(applied.Object, "data", "key")
	check.OK(err)
	check.Equal(value, "dmFsdWU=")
}

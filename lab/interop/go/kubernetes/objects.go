package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/pager"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/client-go/util/retry"

	"github.com/openshift-hyperfleet/pull-secret/lab/interop/go/internal/check"
)

// objects creates, reads, changes, lists, watches and deletes, and finds kinds by discovery.
func (s *story) objects(ctx context.Context) {
	maps := s.CoreV1().ConfigMaps(s.namespace)
	_, err := maps.Get(ctx, "a", metav1.GetOptions{})
	check.That(apierrors.IsNotFound(err), "not found was expected, not %v", err)
	created := check.Must(maps.Create(ctx, s.configMap("a", "red"), metav1.CreateOptions{}))
	_, err = maps.Create(ctx, s.configMap("a", "red"), metav1.CreateOptions{})
	check.That(apierrors.IsAlreadyExists(err), "already exists was expected, not %v", err)
	_, err = maps.Create(ctx, s.configMap("A!", "red"), metav1.CreateOptions{})
	check.That(apierrors.IsInvalid(err), "invalid was expected, not %v", err)

	changed := created.DeepCopy()
	changed.Data["colour"] = "blue"
	check.Must(maps.Update(ctx, changed, metav1.UpdateOptions{}))
	_, err = maps.Update(ctx, changed, metav1.UpdateOptions{})
	check.That(apierrors.IsConflict(err), "a conflict was expected, not %v", err)
	check.OK(retry.RetryOnConflict(retry.DefaultRetry, func() error {
		current := check.Must(maps.Get(ctx, "a", metav1.GetOptions{}))
		current.Data["size"] = "1"
		_, err := maps.Update(ctx, current, metav1.UpdateOptions{})
		return err
	}))
	s.patches(ctx)
	s.lists(ctx)
	s.watches(ctx)

	other := types.UID("00000000-0000-0000-0000-000000000000")
	err = maps.Delete(ctx, "a", *metav1.NewPreconditionDeleteOptions(string(other)))
	check.That(apierrors.IsConflict(err), "a conflict was expected, not %v", err)
	check.OK(maps.Delete(ctx, "a", *metav1.NewPreconditionDeleteOptions(string(created.UID))))
	labelled := metav1.ListOptions{LabelSelector: "app=interop"}
	check.OK(maps.DeleteCollection(ctx, metav1.DeleteOptions{}, labelled))
	check.Equal(len(check.Must(maps.List(ctx, labelled)).Items), 0)
	s.discovery()
}

// patches changes an object in the three ways besides apply.
func (s *story) patches(ctx context.Context) {
	maps := s.CoreV1().ConfigMaps(s.namespace)
	for kind, patch := range map[types.PatchType]string{
		types.JSONPatchType:           `[{"op": "replace", "path": "/data/colour", "value": "%s"}]`,
		types.MergePatchType:          `{"data": {"colour": "%s"}}`,
		types.StrategicMergePatchType: `{"data": {"colour": "%s"}}`,
	} {
		colour := string(kind)
		patched := check.Must(maps.Patch(ctx, "a", kind, fmt.Appendf(nil, patch, colour), metav1.PatchOptions{}))
		check.Equal(patched.Data, map[string]string{"colour": colour, "size": "1"})
	}
}

// lists reads in pages, and by selectors.
func (s *story) lists(ctx context.Context) {
	maps := s.CoreV1().ConfigMaps(s.namespace)
	for number := range 5 {
		check.Must(maps.Create(ctx, s.configMap(fmt.Sprintf("page-%d", number), "red"), metav1.CreateOptions{}))
	}
	pages := 0
	paged := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		pages++
		return maps.List(ctx, options)
	})
	paged.PageSize = 2
	var names []string
	labelled := metav1.ListOptions{LabelSelector: "app=interop"}
	check.OK(paged.EachListItem(ctx, labelled, func(found runtime.Object) error {
		names = append(names, found.(*corev1.ConfigMap).Name)
		return nil
	}))
	check.Equal(names, []string{"a", "page-0", "page-1", "page-2", "page-3", "page-4"})
	check.Equal(pages, 3)
	named := check.Must(maps.List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=page-3"}))
	check.Equal(len(named.Items), 1)
}

// watches waits until an object has changed, from a list on.
func (s *story) watches(ctx context.Context) {
	maps := s.CoreV1().ConfigMaps(s.namespace)
	source := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return maps.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return maps.Watch(ctx, options)
		},
	}, s.Interface)
	check.Must(maps.Update(ctx, s.configMap("page-0", "green"), metav1.UpdateOptions{}))
	last, err := watchtools.UntilWithSync(ctx, source, &corev1.ConfigMap{}, nil, func(event watch.Event) (bool, error) {
		found, ok := event.Object.(*corev1.ConfigMap)
		return ok && found.Name == "page-0" && found.Data["colour"] == "green", nil
	})
	check.Equal(check.Must(last, err).Type, watch.Added)
}

// discovery finds the resource of a kind.
func (s *story) discovery() {
	groups := check.Must(restmapper.GetAPIGroupResources(s.Interface.Discovery()))
	mapper := restmapper.NewDiscoveryRESTMapper(groups)
	job := check.Must(mapper.RESTMapping(schema.GroupKind{Group: "batch", Kind: "Job"}, "v1"))
	check.Equal(job.Resource, schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"})
}

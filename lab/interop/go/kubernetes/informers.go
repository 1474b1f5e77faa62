package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"

	"github.com/openshift-hyperfleet/pull-secret/lab/interop/go/internal/check"
)

// rounds is the number of objects whose life is watched; the server may end watches in between.
const rounds = 5

// informers follows ConfigMaps with a label from before the first to after the last change, and their metadata.
func (s *story) informers(ctx context.Context) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	maps := s.CoreV1().ConfigMaps(s.namespace)
	check.Must(maps.Create(ctx, s.configMap("before", "grey"), metav1.CreateOptions{}))

	selected := informers.WithTweakListOptions(func(options *metav1.ListOptions) { options.LabelSelector = "app=interop" })
	factory := informers.NewSharedInformerFactoryWithOptions(s, time.Second, informers.WithNamespace(s.namespace), selected)
	informer := factory.Core().V1().ConfigMaps()
	news := make(chan string, 1000)
	registration := check.Must(informer.Informer().AddEventHandler(handler(news)))
	factory.Start(ctx.Done())
	check.That(cache.WaitForCacheSync(ctx.Done(), registration.HasSynced), "the informer has not synced")
	await(ctx, news, "added before grey")

	for round := range rounds {
		name := fmt.Sprintf("map-%d", round)
		check.Must(maps.Create(ctx, s.configMap(name, "red"), metav1.CreateOptions{}))
		await(ctx, news, "added "+name+" red")
		check.Must(maps.Update(ctx, s.configMap(name, "blue"), metav1.UpdateOptions{}))
		await(ctx, news, "updated "+name+" blue")
		check.OK(maps.Delete(ctx, name, metav1.DeleteOptions{}))
		await(ctx, news, "deleted "+name+" blue")
	}
	// What loses the label is deleted as far as the informer knows.
	unlabelled := s.configMap("before", "grey")
	unlabelled.Labels = nil
	await(ctx, news, "resynced before grey")
	check.Must(maps.Update(ctx, unlabelled, metav1.UpdateOptions{}))
	await(ctx, news, "deleted before grey")
	check.Equal(len(check.Must(informer.Lister().List(labels.Everything()))), 0)
	s.metadata(ctx)
}

// metadata follows the metadata alone, as garbage collectors do.
func (s *story) metadata(ctx context.Context) {
	resource := corev1.SchemeGroupVersion.WithResource("configmaps")
	client := check.Must(metadata.NewForConfig(s.config))
	informer := metadatainformer.NewFilteredMetadataInformer(client, resource, s.namespace, 0, cache.Indexers{}, nil)
	go informer.Informer().Run(ctx.Done())
	check.That(cache.WaitForCacheSync(ctx.Done(), informer.Informer().HasSynced), "the metadata informer has not synced")
	found, exists, err := informer.Informer().GetStore().GetByKey(s.namespace + "/before")
	check.OK(err)
	check.That(exists, "there is no metadata of the ConfigMap")
	check.Equal(found.(*metav1.PartialObjectMetadata).Name, "before")
}

// handler writes down what happens; an update to the same version is a resync.
func handler(news chan<- string) cache.ResourceEventHandler {
	note := func(event string, object any) {
		if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = unknown.Obj
		}
		found := object.(*corev1.ConfigMap)
		news <- fmt.Sprintf("%s %s %s", event, found.Name, found.Data["colour"])
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { note("added", object) },
		DeleteFunc: func(object any) { note("deleted", object) },
		UpdateFunc: func(before, after any) {
			if before.(*corev1.ConfigMap).ResourceVersion == after.(*corev1.ConfigMap).ResourceVersion {
				note("resynced", after)
			} else {
				note("updated", after)
			}
		},
	}
}

// await reads news until this one comes.
func await(ctx context.Context, news <-chan string, wanted string) {
	for last := ""; last != wanted; {
		select {
		case last = <-news:
		case <-ctx.Done():
			panic(wanted + " was expected, not " + last)
		}
	}
}

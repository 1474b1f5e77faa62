// Command kubernetes uses an API server as Go controllers do: informers, leader election, server-side apply.
//
//	usage: kubernetes NAMESPACE json|protobuf STORY
//
// KUBECONFIG names the server. The namespace is created, and deleted in the end.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/openshift-hyperfleet/pull-secret/lab/interop/go/internal/check"
)

// story is one run: a client, the configuration that it was made from, and the namespace to work in.
type story struct {
	kubernetes.Interface
	config    *rest.Config
	namespace string
}

var stories = map[string]func(*story, context.Context){
	"apply":     (*story).apply,
	"election":  (*story).election,
	"informers": (*story).informers,
	"objects":   (*story).objects,
}

func main() {
	if len(os.Args) != 4 || stories[os.Args[3]] == nil {
		fmt.Fprintln(os.Stderr, "usage: kubernetes NAMESPACE json|protobuf apply|election|informers|objects")
		os.Exit(2)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	config := check.Must(clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG")))
	encoded := rest.CopyConfig(config)
	if os.Args[2] == "protobuf" {
		encoded.ContentType = runtime.ContentTypeProtobuf
		encoded.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	}
	s := &story{Interface: check.Must(kubernetes.NewForConfig(encoded)), config: config, namespace: os.Args[1]}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}
	check.Must(s.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}))
	stories[os.Args[3]](s, ctx)
	check.OK(s.CoreV1().Namespaces().Delete(ctx, s.namespace, metav1.DeleteOptions{}))
}

// configMap returns one with a label by which informers choose it.
func (s *story) configMap(name, colour string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.namespace, Labels: map[string]string{"app": "interop"}},
		Data:       map[string]string{"colour": colour},
	}
}

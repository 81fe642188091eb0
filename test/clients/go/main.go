// Runs steps with the official Go client against a server, and prints the result of each step: "ok NAME" or
// "failed NAME: REASON". The other files contain the steps. All of them use the namespace of this run.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

type step struct {
	name string
	run  func(context.Context, *suite) error
}

var steps = []step{
	{"discovery", discover},
	{"create", createTyped},
	{"update", updateTyped},
	{"errors", readErrors},
	{"strategic patch", patchStrategically},
	{"merge patch", patchMerging},
	{"json patch", patchJSON},
	{"apply", applyTyped},
	{"delete", deleteTyped},
	{"pages", listInPages},
	{"binding", bindPod},
	{"review", reviewAccess},
	{"watch resumed", resumeWatch},
	{"storage informers", syncStorageInformers},
	{"scheduler informers", syncSchedulerInformers},
	{"informer events", followInformer},
	{"informer reconnects", reconnectInformer},
	{"selecting informer", selectInInformer},
	{"dynamic client", useDynamicClient},
	{"dynamic informer", followDynamicInformer},
	{"metadata client", useMetadataClient},
	{"metadata informer", followMetadataInformer},
	{"leader election", electLeader},
	{"core events", recordCoreEvents},
	{"events", recordEvents},
}

const stepTimeout = 20 * time.Second

// suite has the clients that the steps share.
type suite struct {
	namespace string
	config    *rest.Config
	clients   kubernetes.Interface
	dynamic   dynamic.Interface
	metadata  metadata.Interface
	wire      *wire
}

func main() {
	kubeconfig := flag.String("kubeconfig", "", "kubeconfig of the server")
	namespace := flag.String("namespace", "", "namespace to create and use")
	contentType := flag.String("content-type", "", "content type of typed clients (default: the default of the client)")
	flag.Parse()
	t, err := newSuite(*kubeconfig, *namespace, *contentType)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	failed := false
	for _, step := range steps {
		ctx, cancel := context.WithTimeout(context.Background(), stepTimeout)
		if err := step.run(ctx, t); err != nil {
			failed = true
			fmt.Printf("failed %s: %v\n", step.name, err)
		} else {
			fmt.Printf("ok %s\n", step.name)
		}
		cancel()
	}
	if failed {
		os.Exit(1)
	}
}

func newSuite(kubeconfig, namespace, contentType string) (*suite, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	config.ContentType = contentType
	t := &suite{namespace: namespace, config: config, wire: newWire(config)}
	if t.clients, err = kubernetes.NewForConfig(config); err != nil {
		return nil, err
	}
	if t.dynamic, err = dynamic.NewForConfig(config); err != nil {
		return nil, err
	}
	if t.metadata, err = metadata.NewForConfig(config); err != nil {
		return nil, err
	}
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	_, err = t.clients.CoreV1().Namespaces().Create(context.Background(), object, metav1.CreateOptions{})
	return t, err
}

// Steps for informers as controllers and kube-scheduler use them, also across lost connections. They check whether an
// informer starts with a LIST or with a WATCH that sends initial events, according to the feature gate of the client.
package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/features"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	clientwatch "k8s.io/client-go/tools/watch"
)

func resumeWatch(ctx context.Context, t *suite) error {
	maps := t.clients.CoreV1().ConfigMaps(t.namespace)
	first, err := maps.Create(ctx, aConfigMap("watched", map[string]string{"n": "0"}), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	selector := fields.OneTermEqualSelector("metadata.name", "watched").String()
	source := &cache.ListWatch{WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
		options.FieldSelector = selector
		return maps.Watch(ctx, options)
	}}
	events, err := clientwatch.NewRetryWatcherWithContext(ctx, first.ResourceVersion, source)
	if err != nil {
		return err
	}
	defer events.Stop()
	for n := 1; n <= 9; n++ {
		body := fmt.Appendf(nil, `{"data":{"n":"%d"}}`, n)
		if _, err := maps.Patch(ctx, "watched", types.MergePatchType, body, metav1.PatchOptions{}); err != nil {
			return err
		}
		if n%3 == 0 {
			t.wire.cut()
		}
	}
	if err := maps.Delete(ctx, "watched", metav1.DeleteOptions{}); err != nil {
		return err
	}
	var received []string
	for {
		select {
		case event, open := <-events.ResultChan():
			if !open {
				return fmt.Errorf("the watch ended after %v", received)
			}
			object, isMap := event.Object.(*corev1.ConfigMap)
			if !isMap {
				return fmt.Errorf("got %s %s", event.Type, text(event.Object))
			}
			received = append(received, fmt.Sprintf("%s %s", event.Type, object.Data["n"]))
			if event.Type == watch.Deleted {
				return equal("events", strings.Join(received, ", "), "MODIFIED 1, MODIFIED 2, MODIFIED 3, MODIFIED 4, "+
					"MODIFIED 5, MODIFIED 6, MODIFIED 7, MODIFIED 8, MODIFIED 9, DELETED 9")
			}
		case <-ctx.Done():
			return fmt.Errorf("%w after %v", ctx.Err(), received)
		}
	}
}

func syncStorageInformers(ctx context.Context, t *suite) error {
	return syncAll(ctx, t, func(factory informers.SharedInformerFactory) []cache.SharedIndexInformer {
		core, storage := factory.Core().V1(), factory.Storage().V1()
		return []cache.SharedIndexInformer{
			core.PersistentVolumeClaims().Informer(),
			core.PersistentVolumes().Informer(),
			core.Pods().Informer(),
			core.Nodes().Informer(),
			core.ResourceQuotas().Informer(),
			storage.StorageClasses().Informer(),
			storage.CSIStorageCapacities().Informer(),
			storage.CSIDrivers().Informer(),
			storage.CSINodes().Informer(),
			storage.VolumeAttachments().Informer(),
			storage.VolumeAttributesClasses().Informer(),
		}
	})
}

func syncSchedulerInformers(ctx context.Context, t *suite) error {
	return syncAll(ctx, t, func(factory informers.SharedInformerFactory) []cache.SharedIndexInformer {
		return []cache.SharedIndexInformer{
			factory.Core().V1().Pods().Informer(),
			factory.Core().V1().Nodes().Informer(),
			factory.Core().V1().Namespaces().Informer(),
			factory.Core().V1().Services().Informer(),
			factory.Core().V1().ReplicationControllers().Informer(),
			factory.Apps().V1().ReplicaSets().Informer(),
			factory.Apps().V1().StatefulSets().Informer(),
			factory.Policy().V1().PodDisruptionBudgets().Informer(),
			factory.Resource().V1().ResourceClaims().Informer(),
			factory.Resource().V1().ResourceSlices().Informer(),
			factory.Resource().V1().DeviceClasses().Informer(),
		}
	})
}

func syncAll(
	ctx context.Context,
	t *suite,
	choose func(informers.SharedInformerFactory) []cache.SharedIndexInformer,
) error {
	ctx, cancel := context.WithCancel(ctx)
	factory := informers.NewSharedInformerFactory(t.clients, 0)
	selected := choose(factory)
	before := t.wire.count()
	factory.StartWithContext(ctx)
	defer factory.Shutdown()
	defer cancel()
	for kind, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return fmt.Errorf("%s did not sync", kind)
		}
	}
	return checkInitialRequests(t.wire.since(before), len(selected))
}

// checkInitialRequests fails if an informer did not start with the configured request.
func checkInitialRequests(requests []sentRequest, count int) error {
	lists, streams := 0, 0
	for _, request := range requests {
		switch {
		case strings.Contains(request.query, "sendInitialEvents=true"):
			streams++
		case !strings.Contains(request.query, "watch="):
			lists++
		}
	}
	if features.FeatureGates().Enabled(features.WatchListClient) {
		return equal("lists, streams", []int{lists, streams}, []int{0, count})
	}
	return equal("lists, streams", []int{lists, streams}, []int{count, 0})
}

func followInformer(ctx context.Context, t *suite) error {
	ctx, cancel := context.WithCancel(ctx)
	factory := informers.NewSharedInformerFactoryWithOptions(t.clients, 0, informers.WithNamespace(t.namespace))
	capacities := t.clients.StorageV1().CSIStorageCapacities(t.namespace)
	calls := recordHandlerCalls(factory.Storage().V1().CSIStorageCapacities().Informer())
	factory.StartWithContext(ctx)
	defer factory.Shutdown()
	defer cancel()
	factory.WaitForCacheSync(ctx.Done())
	created, err := capacities.Create(ctx, aCapacity("zone-b"), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	created.Capacity = nil
	if _, err = capacities.Update(ctx, created, metav1.UpdateOptions{}); err != nil {
		return err
	}
	if err = capacities.Delete(ctx, "zone-b", metav1.DeleteOptions{}); err != nil {
		return err
	}
	return calls.waitFor(ctx, "add zone-a, add zone-b, update zone-b, delete zone-b")
}

// reconnectInformer checks that changes during lost connections are received exactly once. An informer may list again after
// a reconnect, and then reports the changes in another order.
func reconnectInformer(ctx context.Context, t *suite) error {
	ctx, cancel := context.WithCancel(ctx)
	factory := informers.NewSharedInformerFactoryWithOptions(t.clients, 0,
		informers.WithNamespace(t.namespace),
		informers.WithTweakListOptions(func(options *metav1.ListOptions) { options.LabelSelector = "wave" }))
	calls := recordHandlerCalls(factory.Core().V1().ConfigMaps().Informer())
	factory.StartWithContext(ctx)
	defer factory.Shutdown()
	defer cancel()
	factory.WaitForCacheSync(ctx.Done())
	var expected []string
	for n := range 6 {
		object := aConfigMap(fmt.Sprintf("wave-%d", n), nil)
		object.Labels = map[string]string{"wave": "yes"}
		if n%2 == 1 {
			t.wire.cut()
		}
		if _, err := t.clients.CoreV1().ConfigMaps(t.namespace).Create(ctx, object, metav1.CreateOptions{}); err != nil {
			return err
		}
		expected = append(expected, "add "+object.Name)
	}
	return calls.waitForSorted(ctx, strings.Join(expected, ", "))
}

func selectInInformer(ctx context.Context, t *suite) error {
	ctx, cancel := context.WithCancel(ctx)
	pods := t.clients.CoreV1().Pods(t.namespace)
	factory := informers.NewSharedInformerFactoryWithOptions(t.clients, 0,
		informers.WithNamespace(t.namespace),
		informers.WithTweakListOptions(func(options *metav1.ListOptions) { options.FieldSelector = "spec.nodeName=n2" }))
	calls := recordHandlerCalls(factory.Core().V1().Pods().Informer())
	factory.StartWithContext(ctx)
	defer factory.Shutdown()
	defer cancel()
	factory.WaitForCacheSync(ctx.Done())
	for name, node := range map[string]string{"selected": "n2", "other": "n3"} {
		pod := aPod(name)
		pod.Spec.NodeName = node
		if _, err := pods.Create(ctx, pod, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	now := int64(0)
	if err := pods.Delete(ctx, "selected", metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		return err
	}
	return calls.waitFor(ctx, "add selected, delete selected")
}

// handlerCalls records the calls of an informer's handler in order.
type handlerCalls struct {
	mu    sync.Mutex
	calls []string
}

func recordHandlerCalls(informer cache.SharedIndexInformer) *handlerCalls {
	h := &handlerCalls{}
	add := func(event string, object any) {
		if tombstone, isLate := object.(cache.DeletedFinalStateUnknown); isLate {
			object = tombstone.Obj
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		h.calls = append(h.calls, event+" "+object.(metav1.Object).GetName())
	}
	informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { add("add", object) },
		UpdateFunc: func(_, object any) { add("update", object) },
		DeleteFunc: func(object any) { add("delete", object) },
	})
	return h
}

func (h *handlerCalls) text() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Join(h.calls, ", ")
}

// waitFor waits until the received calls have the expected length, and compares them.
func (h *handlerCalls) waitFor(ctx context.Context, expected string) error {
	if err := h.waitForLength(ctx, expected); err != nil {
		return err
	}
	return equal("received", h.text(), expected)
}

func (h *handlerCalls) waitForSorted(ctx context.Context, expected string) error {
	if err := h.waitForLength(ctx, expected); err != nil {
		return err
	}
	received := strings.Split(h.text(), ", ")
	slices.Sort(received)
	return equal("received, sorted", strings.Join(received, ", "), expected)
}

func (h *handlerCalls) waitForLength(ctx context.Context, expected string) error {
	err := waitFor(ctx, expected, func() (bool, error) { return len(h.text()) >= len(expected), nil })
	if err != nil {
		return fmt.Errorf("%w; received so far: %s", err, h.text())
	}
	return nil
}

// Steps for leader election and event recorders.
package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
)

func electLeader(ctx context.Context, t *suite) error {
	first, err := startCandidate(ctx, t, "first")
	if err != nil {
		return err
	}
	if err := first.waitUntilLeading(ctx); err != nil {
		return err
	}
	second, err := startCandidate(ctx, t, "second")
	if err != nil {
		return err
	}
	defer second.resign()
	err = waitFor(ctx, "the second candidate to observe the leader", func() (bool, error) { return second.elector.GetLeader() == "first", nil })
	if err != nil {
		return err
	}
	first.resign()
	if err := second.waitUntilLeading(ctx); err != nil {
		return err
	}
	lease, err := t.clients.CoordinationV1().Leases(t.namespace).Get(ctx, "leader", metav1.GetOptions{})
	if err != nil {
		return err
	}
	return firstError(
		func() error { return equal("holder", *lease.Spec.HolderIdentity, "second") },
		func() error { return equal("renewed", lease.Spec.RenewTime != nil, true) },
		func() error { return equal("transitions", *lease.Spec.LeaseTransitions >= 1, true) },
	)
}

type candidate struct {
	elector *leaderelection.LeaderElector
	leads   chan struct{}
	resign  func()
}

func startCandidate(ctx context.Context, t *suite, name string) (*candidate, error) {
	ctx, cancel := context.WithCancel(ctx)
	lock, err := resourcelock.New(resourcelock.LeasesResourceLock, t.namespace, "leader",
		t.clients.CoreV1(), t.clients.CoordinationV1(), resourcelock.ResourceLockConfig{Identity: name})
	if err != nil {
		cancel()
		return nil, err
	}
	leads, stopped := make(chan struct{}), make(chan struct{})
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:            lock,
		LeaseDuration:   15 * time.Second,
		RenewDeadline:   10 * time.Second,
		RetryPeriod:     50 * time.Millisecond,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { close(leads) },
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		cancel()
		return nil, err
	}
	go func() {
		elector.Run(ctx)
		close(stopped)
	}()
	return &candidate{elector: elector, leads: leads, resign: func() { cancel(); <-stopped }}, nil
}

func (c *candidate) waitUntilLeading(ctx context.Context) error {
	select {
	case <-c.leads:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("never became leader: %w", ctx.Err())
	}
}

// recordCoreEvents uses the recorder of CSI sidecars, which patches the count of a repeated event.
func recordCoreEvents(ctx context.Context, t *suite) error {
	claim, err := t.clients.CoreV1().PersistentVolumeClaims(t.namespace).Get(ctx, "orders", metav1.GetOptions{})
	if err != nil {
		return err
	}
	broadcaster := record.NewBroadcaster()
	defer broadcaster.Shutdown()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: t.clients.CoreV1().Events("")})
	recorder := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "provisioner"})
	for range 3 {
		recorder.Eventf(claim, corev1.EventTypeNormal, "Provisioning", "provisioning a volume for %s", claim.Name)
	}
	return waitFor(ctx, "one event counted three times", func() (bool, error) {
		selected := metav1.ListOptions{FieldSelector: "reason=Provisioning,involvedObject.name=orders"}
		list, err := t.clients.CoreV1().Events(t.namespace).List(ctx, selected)
		if err != nil || len(list.Items) == 0 {
			return false, err
		}
		return list.Items[0].Count == 3, equal("events", len(list.Items), 1)
	})
}

// recordEvents uses the recorder of kube-scheduler, which records a repeated event as a series.
func recordEvents(ctx context.Context, t *suite) error {
	pod, err := t.clients.CoreV1().Pods(t.namespace).Get(ctx, "web", metav1.GetOptions{})
	if err != nil {
		return err
	}
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: t.clients.EventsV1()})
	defer broadcaster.Shutdown()
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		return err
	}
	recorder := broadcaster.NewRecorder(scheme.Scheme, "scheduler")
	for range 2 {
		recorder.Eventf(pod, nil, corev1.EventTypeWarning, "FailedScheduling", "Scheduling", "no node fits")
	}
	return waitFor(ctx, "one event with a series", func() (bool, error) {
		list, err := t.clients.EventsV1().Events(t.namespace).List(ctx, metav1.ListOptions{FieldSelector: "reason=FailedScheduling"})
		if err != nil || len(list.Items) == 0 || list.Items[0].Series == nil {
			return false, err
		}
		return true, firstError(
			func() error { return equal("events", len(list.Items), 1) },
			func() error { return equal("regarding", list.Items[0].Regarding.Name, "web") },
			func() error { return equal("note", list.Items[0].Note, "no node fits") },
			func() error { return equal("times", list.Items[0].Series.Count, 2) },
		)
	})
}

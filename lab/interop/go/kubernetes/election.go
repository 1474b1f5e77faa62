package main

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/openshift-hyperfleet/pull-secret/lab/interop/go/internal/check"
)

// candidate takes part in the election until its context ends.
type candidate struct {
	leads chan struct{}
	sees  chan string
	ended chan struct{}
	stop  context.CancelFunc
}

// election lets two candidates share a Lease: the second one leads when the first one steps down.
func (s *story) election(ctx context.Context) {
	one := s.candidate(ctx, "one")
	<-one.leads
	two := s.candidate(ctx, "two")
	check.Equal(<-two.sees, "one")
	one.stop()
	<-one.ended
	<-two.leads
	check.Equal(<-two.sees, "two")

	leases := s.CoordinationV1().Leases(s.namespace)
	held := check.Must(leases.Get(ctx, "leader", metav1.GetOptions{}))
	check.Equal(*held.Spec.HolderIdentity, "two")
	check.Equal(*held.Spec.LeaseTransitions, 1)
	check.Equal(*held.Spec.LeaseDurationSeconds, 60)
	check.That(!held.Spec.RenewTime.Before(held.Spec.AcquireTime), "%v", held.Spec)
	two.stop()
	<-two.ended

	// A candidate that has not seen the latest state cannot take the Lease.
	holder := "three"
	held.Spec.HolderIdentity = &holder
	_, err := leases.Update(ctx, held, metav1.UpdateOptions{})
	check.That(apierrors.IsConflict(err), "a conflict was expected, not %v", err)
	released := check.Must(leases.Get(ctx, "leader", metav1.GetOptions{})).Spec.HolderIdentity
	check.That(released == nil || *released == "", "the Lease is held by %v", released)
}

func (s *story) candidate(ctx context.Context, identity string) *candidate {
	ctx, stop := context.WithCancel(ctx)
	c := &candidate{leads: make(chan struct{}), sees: make(chan string, 10), ended: make(chan struct{}), stop: stop}
	elector := check.Must(leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Name: "leader", Namespace: s.namespace},
			Client:     s.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
		},
		LeaseDuration:   60 * time.Second,
		RenewDeadline:   50 * time.Second,
		RetryPeriod:     50 * time.Millisecond,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { close(c.leads) },
			OnStoppedLeading: func() {},
			OnNewLeader:      func(identity string) { c.sees <- identity },
		},
	}))
	go func() {
		defer close(c.ended)
		elector.Run(ctx)
	}()
	return c
}

// How steps say what they expect, and how they wait for it.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/wait"
)

// equal fails unless both are the same to Kubernetes: amounts by value, empty like absent.
func equal[T any](what string, got, want T) error {
	if equality.Semantic.DeepEqual(got, want) {
		return nil
	}
	return fmt.Errorf("%s: got %s, want %s", what, text(got), text(want))
}

// contains fails unless everything set in want is so in got.
func contains[T any](what string, got, want T) error {
	if equality.Semantic.DeepDerivative(want, got) {
		return nil
	}
	return fmt.Errorf("%s: got %s, want at least %s", what, text(got), text(want))
}

// refused fails unless the error is of the kind named.
func refused(what string, err error, isKind func(error) bool) error {
	if err == nil {
		return fmt.Errorf("%s: succeeded, want an error", what)
	}
	if !isKind(err) {
		return fmt.Errorf("%s: another error than expected: %w", what, err)
	}
	return nil
}

// until waits for a condition; the step's own deadline is the limit.
func until(ctx context.Context, what string, condition func() (bool, error)) error {
	err := wait.PollUntilContextCancel(ctx, 10*time.Millisecond, true, func(context.Context) (bool, error) {
		return condition()
	})
	if err != nil {
		return fmt.Errorf("waiting for %s: %w", what, err)
	}
	return nil
}

// each stops at the first error.
func each(checks ...func() error) error {
	for _, check := range checks {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func text(value any) string {
	bytes, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprintf("%+v", value)
	}
	return string(bytes)
}

func ptr[T any](value T) *T { return &value }

// Assertions of the steps, and polling for conditions.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/wait"
)

// equal fails unless Kubernetes treats the values as equal: it compares quantities by value, and empty equals absent.
func equal[T any](description string, got, want T) error {
	if equality.Semantic.DeepEqual(got, want) {
		return nil
	}
	return fmt.Errorf("%s: got %s, want %s", description, text(got), text(want))
}

// contains fails unless got has all values that are set in want.
func contains[T any](description string, got, want T) error {
	if equality.Semantic.DeepDerivative(want, got) {
		return nil
	}
	return fmt.Errorf("%s: got %s, want at least %s", description, text(got), text(want))
}

// expectError fails unless err satisfies isKind.
func expectError(description string, err error, isKind func(error) bool) error {
	if err == nil {
		return fmt.Errorf("%s: succeeded, want an error", description)
	}
	if !isKind(err) {
		return fmt.Errorf("%s: unexpected error: %w", description, err)
	}
	return nil
}

// waitFor polls a condition until the deadline of the step.
func waitFor(ctx context.Context, description string, condition func() (bool, error)) error {
	err := wait.PollUntilContextCancel(ctx, 10*time.Millisecond, true, func(context.Context) (bool, error) {
		return condition()
	})
	if err != nil {
		return fmt.Errorf("waiting for %s: %w", description, err)
	}
	return nil
}

// firstError runs the checks and returns the first error.
func firstError(checks ...func() error) error {
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

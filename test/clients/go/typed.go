// Steps for the typed clients: every verb, with bodies in protobuf unless -content-type is set.
package main

import (
	"context"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/tools/pager"
)

func createTyped(ctx context.Context, t *suite) error {
	core, storage := t.clients.CoreV1(), t.clients.StorageV1()
	before := t.wire.count()
	class, err := storage.StorageClasses().Create(ctx, aStorageClass("gold-"+t.namespace), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	claim, err := core.PersistentVolumeClaims(t.namespace).Create(ctx, aClaim("orders"), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	volume, err := core.PersistentVolumes().Create(ctx, aVolume("disk-"+t.namespace), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	capacity, err := storage.CSIStorageCapacities(t.namespace).Create(ctx, aCapacity("zone-a"), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	pod, err := core.Pods(t.namespace).Create(ctx, aPod("web"), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "login"}, Data: map[string][]byte{"key": {0, 255}}}
	secret, err = core.Secrets(t.namespace).Create(ctx, secret, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	ghost, err := core.Secrets(t.namespace).Create(ctx,
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{GenerateName: "ghost-"}},
		metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return err
	}
	return firstError(
		func() error { return checkContentType(t, before) },
		func() error {
			return contains("class", *withoutServerFields(class), *withoutServerFields(aStorageClass("")))
		},
		func() error { return contains("claim", claim.Spec, aClaim("orders").Spec) },
		func() error {
			return equal("default volume mode", *claim.Spec.VolumeMode, corev1.PersistentVolumeFilesystem)
		},
		func() error { return contains("volume", volume.Spec, aVolume("").Spec) },
		func() error {
			return contains("capacity", *withoutServerFields(capacity), *withoutServerFields(aCapacity("")))
		},
		func() error { return contains("pod", pod.Spec, aPod("").Spec) },
		func() error { return equal("secret", secret.Data, map[string][]byte{"key": {0, 255}}) },
		func() error { return equal("generated name", strings.HasPrefix(ghost.Name, "ghost-"), true) },
		func() error {
			_, err := core.Secrets(t.namespace).Get(ctx, ghost.Name, metav1.GetOptions{})
			return expectError("get of a dry run", err, apierrors.IsNotFound)
		},
	)
}

// withoutServerFields removes the fields that the server adds to an object.
func withoutServerFields[T metav1.ObjectMetaAccessor](object T) T {
	meta := object.GetObjectMeta()
	meta.SetName("")
	meta.SetNamespace("")
	meta.SetUID("")
	meta.SetResourceVersion("")
	meta.SetCreationTimestamp(metav1.Time{})
	meta.SetManagedFields(nil)
	return object
}

// checkContentType checks that the requests had the configured content type.
func checkContentType(t *suite, before int) error {
	want := t.config.ContentType
	if want == "" {
		want = runtime.ContentTypeProtobuf
	}
	for _, request := range t.wire.since(before) {
		if request.method == "POST" && request.contentType != want {
			return fmt.Errorf("a body was sent as %s, want %s", request.contentType, want)
		}
	}
	return nil
}

func updateTyped(ctx context.Context, t *suite) error {
	claims := t.clients.CoreV1().PersistentVolumeClaims(t.namespace)
	stored, err := claims.Get(ctx, "orders", metav1.GetOptions{})
	if err != nil {
		return err
	}
	next := stored.DeepCopy()
	next.Annotations = map[string]string{"volume.kubernetes.io/selected-node": "n1"}
	updated, err := claims.Update(ctx, next, metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	_, staleErr := claims.Update(ctx, next, metav1.UpdateOptions{})
	next = updated.DeepCopy()
	next.Spec.VolumeName = "other" // not part of the status, so it must be ignored
	next.Status.Phase = corev1.ClaimBound
	next.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2Gi")}
	withStatus, err := claims.UpdateStatus(ctx, next, metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	return firstError(
		func() error { return equal("annotations", updated.Annotations, next.Annotations) },
		func() error { return expectError("update of an old version", staleErr, apierrors.IsConflict) },
		func() error { return equal("status", withStatus.Status, next.Status) },
		func() error { return equal("volume", withStatus.Spec.VolumeName, "") },
	)
}

func readErrors(ctx context.Context, t *suite) error {
	claims := t.clients.CoreV1().PersistentVolumeClaims(t.namespace)
	_, missingErr := claims.Get(ctx, "nothing", metav1.GetOptions{})
	_, existsErr := claims.Create(ctx, aClaim("orders"), metav1.CreateOptions{})
	invalidClaim := aClaim("Bad_Name")
	invalidClaim.Spec.AccessModes = nil
	_, invalidErr := claims.Create(ctx, invalidClaim, metav1.CreateOptions{})
	_, versionErr := claims.List(ctx, metav1.ListOptions{ResourceVersion: "yesterday"})
	return firstError(
		func() error { return expectError("get", missingErr, apierrors.IsNotFound) },
		func() error {
			return equal("message", missingErr.Error(), `persistentvolumeclaims "nothing" not found`)
		},
		func() error { return expectError("second create", existsErr, apierrors.IsAlreadyExists) },
		func() error { return expectError("invalid claim", invalidErr, apierrors.IsInvalid) },
		func() error {
			causes := invalidErr.(apierrors.APIStatus).Status().Details.Causes
			fields := map[string]bool{}
			for _, cause := range causes {
				fields[cause.Field] = true
			}
			return equal("fields", fields, map[string]bool{"metadata.name": true, "spec.accessModes": true})
		},
		func() error {
			return expectError("version", versionErr, func(err error) bool {
				return apierrors.IsBadRequest(err) || apierrors.IsInvalid(err)
			})
		},
	)
}

func patchStrategically(ctx context.Context, t *suite) error {
	claims := t.clients.CoreV1().PersistentVolumeClaims(t.namespace)
	patch := func(body string, subresources ...string) (*corev1.PersistentVolumeClaim, error) {
		return claims.Patch(ctx, "orders", types.StrategicMergePatchType, []byte(body), metav1.PatchOptions{}, subresources...)
	}
	if _, err := patch(`{"status":{"conditions":[{"type":"Resizing","status":"True"}]}}`, "status"); err != nil {
		return err
	}
	merged, err := patch(`{"status":{"conditions":[{"type":"FileSystemResizePending","status":"True"}]}}`, "status")
	if err != nil {
		return err
	}
	reduced, err := patch(`{"status":{"conditions":[{"type":"Resizing","$patch":"delete"}]}}`, "status")
	if err != nil {
		return err
	}
	return firstError(
		func() error { return equal("merged by type", len(merged.Status.Conditions), 2) },
		func() error { return equal("remaining", len(reduced.Status.Conditions), 1) },
		func() error {
			return equal("type", reduced.Status.Conditions[0].Type, corev1.PersistentVolumeClaimFileSystemResizePending)
		},
	)
}

func patchMerging(ctx context.Context, t *suite) error {
	maps := t.clients.CoreV1().ConfigMaps(t.namespace)
	if _, err := maps.Create(ctx, aConfigMap("merged", map[string]string{"a": "1", "b": "2"}), metav1.CreateOptions{}); err != nil {
		return err
	}
	body := []byte(`{"data":{"a":null,"c":"3"}}`)
	patched, err := maps.Patch(ctx, "merged", types.MergePatchType, body, metav1.PatchOptions{})
	if err != nil {
		return err
	}
	return equal("data", patched.Data, map[string]string{"b": "2", "c": "3"})
}

func patchJSON(ctx context.Context, t *suite) error {
	maps := t.clients.CoreV1().ConfigMaps(t.namespace)
	if _, err := maps.Create(ctx, aConfigMap("operated", map[string]string{"a": "1"}), metav1.CreateOptions{}); err != nil {
		return err
	}
	patch := func(body string) (*corev1.ConfigMap, error) {
		return maps.Patch(ctx, "operated", types.JSONPatchType, []byte(body), metav1.PatchOptions{})
	}
	patched, err := patch(`[{"op":"test","path":"/data/a","value":"1"},{"op":"move","from":"/data/a","path":"/data/b"}]`)
	if err != nil {
		return err
	}
	_, testErr := patch(`[{"op":"test","path":"/data/b","value":"2"}]`)
	return firstError(
		func() error { return equal("data", patched.Data, map[string]string{"b": "1"}) },
		func() error { return expectError("failing test", testErr, apierrors.IsInvalid) },
	)
}

func applyTyped(ctx context.Context, t *suite) error {
	maps := t.clients.CoreV1().ConfigMaps(t.namespace)
	configuration := func(data map[string]string) *applycorev1.ConfigMapApplyConfiguration {
		return applycorev1.ConfigMap("applied", t.namespace).WithData(data)
	}
	asOwner := metav1.ApplyOptions{FieldManager: "owner"}
	if _, err := maps.Apply(ctx, configuration(map[string]string{"a": "1", "b": "2"}), asOwner); err != nil {
		return err
	}
	reduced, err := maps.Apply(ctx, configuration(map[string]string{"a": "1"}), asOwner)
	if err != nil {
		return err
	}
	_, conflictErr := maps.Apply(ctx, configuration(map[string]string{"a": "9"}), metav1.ApplyOptions{FieldManager: "rival"})
	forced, err := maps.Apply(ctx, configuration(map[string]string{"a": "9"}), metav1.ApplyOptions{FieldManager: "rival", Force: true})
	if err != nil {
		return err
	}
	rivalFields, err := applycorev1.ExtractConfigMap(forced, "rival")
	if err != nil {
		return err
	}
	ownerFields, err := applycorev1.ExtractConfigMap(forced, "owner")
	if err != nil {
		return err
	}
	return firstError(
		func() error { return equal("after b is no longer applied", reduced.Data, map[string]string{"a": "1"}) },
		func() error { return expectError("apply over another's field", conflictErr, apierrors.IsConflict) },
		func() error { return equal("after force", forced.Data, map[string]string{"a": "9"}) },
		func() error { return equal("fields of the rival", rivalFields.Data, map[string]string{"a": "9"}) },
		func() error { return equal("remaining fields of the owner", len(ownerFields.Data), 0) },
	)
}

func deleteTyped(ctx context.Context, t *suite) error {
	maps := t.clients.CoreV1().ConfigMaps(t.namespace)
	for _, name := range []string{"old-1", "old-2", "kept"} {
		object := aConfigMap(name, nil)
		object.Labels = map[string]string{"age": strings.TrimRight(name, "-12")}
		if _, err := maps.Create(ctx, object, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	otherUID := metav1.NewUIDPreconditions("11111111-2222-3333-4444-555555555555")
	preconditionErr := maps.Delete(ctx, "kept", metav1.DeleteOptions{Preconditions: otherUID})
	selector := metav1.ListOptions{LabelSelector: "age=old"}
	if err := maps.DeleteCollection(ctx, metav1.DeleteOptions{}, selector); err != nil {
		return err
	}
	remaining, err := maps.List(ctx, metav1.ListOptions{LabelSelector: "age"})
	if err != nil {
		return err
	}
	foreground := metav1.DeletePropagationForeground
	if err := maps.Delete(ctx, "kept", metav1.DeleteOptions{PropagationPolicy: &foreground}); err != nil {
		return err
	}
	terminating, err := maps.Get(ctx, "kept", metav1.GetOptions{})
	if err == nil && terminating.DeletionTimestamp == nil {
		return fmt.Errorf("neither deleted nor being deleted: %s", text(terminating))
	}
	return firstError(
		func() error { return expectError("delete of another UID", preconditionErr, apierrors.IsConflict) },
		func() error { return equal("remaining", len(remaining.Items), 1) },
		func() error { return equal("remaining", remaining.Items[0].Name, "kept") },
	)
}

func listInPages(ctx context.Context, t *suite) error {
	maps := t.clients.CoreV1().ConfigMaps(t.namespace)
	for n := range 5 {
		object := aConfigMap(fmt.Sprintf("page-%d", n), nil)
		object.Labels = map[string]string{"paged": "yes"}
		if _, err := maps.Create(ctx, object, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	before := t.wire.count()
	pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return maps.List(ctx, options)
	})
	pages.PageSize = 2
	var names []string
	err := pages.EachListItem(ctx, metav1.ListOptions{LabelSelector: "paged"}, func(object runtime.Object) error {
		names = append(names, object.(*corev1.ConfigMap).Name)
		return nil
	})
	if err != nil {
		return err
	}
	return firstError(
		func() error { return equal("names", names, []string{"page-0", "page-1", "page-2", "page-3", "page-4"}) },
		func() error { return equal("requests", len(t.wire.since(before)), 3) },
	)
}

func bindPod(ctx context.Context, t *suite) error {
	pods := t.clients.CoreV1().Pods(t.namespace)
	binding := &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Target:     corev1.ObjectReference{Kind: "Node", Name: "n1"},
	}
	if err := pods.Bind(ctx, binding, metav1.CreateOptions{}); err != nil {
		return err
	}
	bound, err := pods.Get(ctx, "web", metav1.GetOptions{})
	if err != nil {
		return err
	}
	secondErr := pods.Bind(ctx, binding, metav1.CreateOptions{})
	return firstError(
		func() error { return equal("node", bound.Spec.NodeName, "n1") },
		func() error { return expectError("second binding", secondErr, apierrors.IsConflict) },
	)
}

func reviewAccess(ctx context.Context, t *suite) error {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: t.namespace, Verb: "create", Resource: "pods"},
	}}
	reviews := t.clients.AuthorizationV1().SelfSubjectAccessReviews()
	response, err := reviews.Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	return equal("allowed", response.Status.Allowed, true)
}

// Steps for clients without generated types: discovery, the dynamic client and the metadata client.
package main

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/restmapper"
)

var (
	claimResource     = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
	configMapResource = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	classResource     = schema.GroupVersionResource{Group: "storage.k8s.io", Version: "v1", Resource: "storageclasses"}
)

func discover(_ context.Context, t *suite) error {
	client := t.clients.Discovery()
	version, err := client.ServerVersion()
	if err != nil {
		return err
	}
	_, aggregated, err := client.ServerGroupsAndResources()
	if err != nil {
		return err
	}
	_, legacy, err := client.WithLegacy().ServerGroupsAndResources()
	if err != nil {
		return err
	}
	mapper := restmapper.NewShortcutExpander(
		restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client)), client, nil)
	kind, err := mapper.KindFor(schema.GroupVersionResource{Resource: "pvc"})
	if err != nil {
		return err
	}
	schemas, err := client.OpenAPIV3().Paths()
	if err != nil {
		return err
	}
	document, err := client.OpenAPISchema()
	if err != nil {
		return err
	}
	return firstError(
		func() error { return equal("major version", version.Major, "1") },
		func() error { return equal("kind of pvc", kind.Kind, "PersistentVolumeClaim") },
		func() error { return equal("resources", names(aggregated), names(legacy)) },
		func() error { return equal("has claims", names(aggregated)["v1 persistentvolumeclaims"], true) },
		func() error { return equal("has the storage schema", schemas["apis/storage.k8s.io/v1"] != nil, true) },
		func() error { return equal("has a document", document != nil, true) },
	)
}

// names returns a set, because aggregated and unaggregated discovery order resources differently.
func names(lists []*metav1.APIResourceList) map[string]bool {
	found := map[string]bool{}
	for _, list := range lists {
		for _, resource := range list.APIResources {
			found[list.GroupVersion+" "+resource.Name] = true
		}
	}
	return found
}

func useDynamicClient(ctx context.Context, t *suite) error {
	maps := t.dynamic.Resource(configMapResource).Namespace(t.namespace)
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "dynamic"},
		"data":     map[string]any{"a": "1"},
	}}
	created, err := maps.Create(ctx, object, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	created.SetLabels(map[string]string{"seen": "yes"})
	updated, err := maps.Update(ctx, created, metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	object.Object["data"] = map[string]any{"b": "2"}
	applied, err := maps.Apply(ctx, "dynamic", object, metav1.ApplyOptions{FieldManager: "dynamic"})
	if err != nil {
		return err
	}
	data, _, _ := unstructured.NestedStringMap(applied.Object, "data")
	if err := maps.Delete(ctx, "dynamic", metav1.DeleteOptions{}); err != nil {
		return err
	}
	_, missingErr := maps.Get(ctx, "dynamic", metav1.GetOptions{})
	object.Object["colour"] = "green"
	_, unknownFieldErr := maps.Create(ctx, object, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	return firstError(
		func() error { return equal("labels", updated.GetLabels(), map[string]string{"seen": "yes"}) },
		func() error { return equal("data", data, map[string]string{"a": "1", "b": "2"}) },
		func() error { return expectError("get", missingErr, apierrors.IsNotFound) },
		func() error { return expectError("unknown field", unknownFieldErr, apierrors.IsBadRequest) },
	)
}

func followDynamicInformer(ctx context.Context, t *suite) error {
	ctx, cancel := context.WithCancel(ctx)
	factory := dynamicinformer.NewDynamicSharedInformerFactory(t.dynamic, 0)
	classes := factory.ForResource(classResource)
	factory.ForResource(claimResource).Informer()
	before := t.wire.count()
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	defer cancel()
	for resource, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return fmt.Errorf("%s did not sync", resource)
		}
	}
	if err := checkInitialRequests(t.wire.since(before), 2); err != nil {
		return err
	}
	name := "silver-" + t.namespace
	if _, err := t.clients.StorageV1().StorageClasses().Create(ctx, aStorageClass(name), metav1.CreateOptions{}); err != nil {
		return err
	}
	return waitFor(ctx, "the class", func() (bool, error) {
		object, err := classes.Lister().Get(name)
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		provisioner, _, _ := unstructured.NestedString(object.(*unstructured.Unstructured).Object, "provisioner")
		return true, equal("provisioner", provisioner, "disks.example.com")
	})
}

func useMetadataClient(ctx context.Context, t *suite) error {
	maps := t.metadata.Resource(configMapResource).Namespace(t.namespace)
	if _, err := t.clients.CoreV1().ConfigMaps(t.namespace).Create(ctx, aConfigMap("meta", nil), metav1.CreateOptions{}); err != nil {
		return err
	}
	body := []byte(`{"metadata":{"labels":{"meta":"yes"}}}`)
	patched, err := maps.Patch(ctx, "meta", types.MergePatchType, body, metav1.PatchOptions{})
	if err != nil {
		return err
	}
	listed, err := maps.List(ctx, metav1.ListOptions{LabelSelector: "meta=yes"})
	if err != nil {
		return err
	}
	if err := maps.Delete(ctx, "meta", metav1.DeleteOptions{}); err != nil {
		return err
	}
	_, missingErr := maps.Get(ctx, "meta", metav1.GetOptions{})
	return firstError(
		func() error { return equal("labels", patched.Labels, map[string]string{"meta": "yes"}) },
		func() error { return equal("listed", len(listed.Items), 1) },
		func() error { return expectError("get", missingErr, apierrors.IsNotFound) },
	)
}

func followMetadataInformer(ctx context.Context, t *suite) error {
	ctx, cancel := context.WithCancel(ctx)
	factory := metadatainformer.NewFilteredSharedInformerFactory(t.metadata, 0, t.namespace,
		func(options *metav1.ListOptions) { options.LabelSelector = "partial" })
	calls := recordHandlerCalls(factory.ForResource(configMapResource).Informer())
	before := t.wire.count()
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	defer cancel()
	for resource, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return fmt.Errorf("%s did not sync", resource)
		}
	}
	if err := checkInitialRequests(t.wire.since(before), 1); err != nil {
		return err
	}
	maps := t.clients.CoreV1().ConfigMaps(t.namespace)
	object := aConfigMap("partial", nil)
	object.Labels = map[string]string{"partial": "yes"}
	if _, err := maps.Create(ctx, object, metav1.CreateOptions{}); err != nil {
		return err
	}
	body := []byte(`{"metadata":{"labels":{"partial":null}}}`)
	if _, err := maps.Patch(ctx, "partial", types.MergePatchType, body, metav1.PatchOptions{}); err != nil {
		return err
	}
	return calls.waitFor(ctx, "add partial, delete partial")
}

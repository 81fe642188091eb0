// Objects that the steps create.
package main

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func aStorageClass(name string) *storagev1.StorageClass {
	return &storagev1.StorageClass{
		ObjectMeta:           metav1.ObjectMeta{Name: name},
		Provisioner:          "disks.example.com",
		Parameters:           map[string]string{"tier": "gold"},
		AllowVolumeExpansion: ptr(true),
		VolumeBindingMode:    ptr(storagev1.VolumeBindingWaitForFirstConsumer),
		ReclaimPolicy:        ptr(corev1.PersistentVolumeReclaimRetain),
		MountOptions:         []string{"noatime"},
	}
}

func aClaim(name string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "shop"}},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			StorageClassName: ptr("gold"),
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1.5Gi")},
			},
		},
	}
}

func aVolume(name string) *corev1.PersistentVolume {
	zone := corev1.NodeSelectorRequirement{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{"a", "b"}}
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:         corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")},
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce, corev1.ReadOnlyMany},
			StorageClassName: "gold",
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				CSI: &corev1.CSIPersistentVolumeSource{
					Driver:           "disks.example.com",
					VolumeHandle:     "handle-1",
					VolumeAttributes: map[string]string{"fast": "yes"},
				},
			},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{
					{MatchExpressions: []corev1.NodeSelectorRequirement{zone}},
				},
			}},
		},
	}
}

func aCapacity(name string) *storagev1.CSIStorageCapacity {
	return &storagev1.CSIStorageCapacity{
		ObjectMeta:        metav1.ObjectMeta{Name: name},
		StorageClassName:  "gold",
		NodeTopology:      &metav1.LabelSelector{MatchLabels: map[string]string{"zone": "a"}},
		Capacity:          resource.NewQuantity(3_000_000_001, resource.DecimalSI),
		MaximumVolumeSize: ptr(resource.MustParse("1Gi")),
	}
}

func aPod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{
				Name:         "main",
				Image:        "shop:1",
				Env:          []corev1.EnvVar{{Name: "LANG", Value: "dé"}},
				VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}},
			}},
			Volumes: []corev1.Volume{{
				Name: "data",
				VolumeSource: corev1.VolumeSource{
					PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "orders"},
				},
			}},
		},
	}
}

func aConfigMap(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data}
}

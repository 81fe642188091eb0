// Declares the kinds that are not implemented, but that upstream programs list or watch: a program that waits for its
// caches does nothing until each of them has been listed. Lists are empty, except for default/kubernetes; writes are
// rejected.
//
// Origin: the informers of kube-controller-manager and kube-scheduler 1.30 to 1.37 and of the CSI sidecars, without the
// kinds that this server stores. upstream-informers.fixture.ts has the complete list and describes how to extract it
// again; foreign.test.ts checks that each of its entries is served.
import { defineForeignKind } from '../foreign-kind.ts'
import type { Kind } from '../kind.ts'
import { endpointSliceKind, endpointsKind, serviceKind } from './kubernetes-service/kubernetes-service.ts'

/** Group, kind, plural, scope, and the versions that the informers use. */
const DECLARATIONS: readonly (readonly [string, string, string, 'Namespaced' | 'Cluster', readonly string[]])[] = [
  ['', 'ReplicationController', 'replicationcontrollers', 'Namespaced', ['v1']],
  ['admissionregistration.k8s.io', 'ValidatingAdmissionPolicy', 'validatingadmissionpolicies', 'Cluster', ['v1']],
  ['apps', 'DaemonSet', 'daemonsets', 'Namespaced', ['v1']],
  ['apps', 'Deployment', 'deployments', 'Namespaced', ['v1']],
  ['apps', 'ReplicaSet', 'replicasets', 'Namespaced', ['v1']],
  ['autoscaling', 'HorizontalPodAutoscaler', 'horizontalpodautoscalers', 'Namespaced', ['v2']],
  ['batch', 'CronJob', 'cronjobs', 'Namespaced', ['v1']],
  ['batch', 'Job', 'jobs', 'Namespaced', ['v1']],
  ['certificates.k8s.io', 'ClusterTrustBundle', 'clustertrustbundles', 'Cluster', ['v1', 'v1beta1', 'v1alpha1']],
  [
    'certificates.k8s.io',
    'PodCertificateRequest',
    'podcertificaterequests',
    'Namespaced',
    ['v1', 'v1beta1', 'v1alpha1'],
  ],
  ['gateway.networking.k8s.io', 'ReferenceGrant', 'referencegrants', 'Namespaced', ['v1beta1']],
  ['internal.apiserver.k8s.io', 'StorageVersion', 'storageversions', 'Cluster', ['v1alpha1']],
  ['networking.k8s.io', 'IPAddress', 'ipaddresses', 'Cluster', ['v1', 'v1beta1', 'v1alpha1']],
  ['networking.k8s.io', 'ServiceCIDR', 'servicecidrs', 'Cluster', ['v1', 'v1beta1', 'v1alpha1']],
  ['policy', 'PodDisruptionBudget', 'poddisruptionbudgets', 'Namespaced', ['v1']],
  ['resource.k8s.io', 'DeviceClass', 'deviceclasses', 'Cluster', ['v1', 'v1beta1', 'v1alpha3']],
  ['resource.k8s.io', 'DeviceTaintRule', 'devicetaintrules', 'Cluster', ['v1', 'v1beta2', 'v1alpha3']],
  ['resource.k8s.io', 'PodSchedulingContext', 'podschedulingcontexts', 'Namespaced', ['v1alpha3', 'v1alpha2']],
  ['resource.k8s.io', 'ResourceClaim', 'resourceclaims', 'Namespaced', ['v1', 'v1beta1', 'v1alpha3', 'v1alpha2']],
  ['resource.k8s.io', 'ResourceClaimParameters', 'resourceclaimparameters', 'Namespaced', ['v1alpha2']],
  [
    'resource.k8s.io',
    'ResourceClaimTemplate',
    'resourceclaimtemplates',
    'Namespaced',
    ['v1', 'v1beta1', 'v1alpha3', 'v1alpha2'],
  ],
  ['resource.k8s.io', 'ResourceClass', 'resourceclasses', 'Cluster', ['v1alpha2']],
  ['resource.k8s.io', 'ResourceClassParameters', 'resourceclassparameters', 'Namespaced', ['v1alpha2']],
  ['resource.k8s.io', 'ResourcePoolStatusRequest', 'resourcepoolstatusrequests', 'Cluster', ['v1alpha3']],
  ['resource.k8s.io', 'ResourceSlice', 'resourceslices', 'Cluster', ['v1', 'v1beta1', 'v1alpha3', 'v1alpha2']],
  ['scheduling.k8s.io', 'CompositePodGroup', 'compositepodgroups', 'Namespaced', ['v1alpha3']],
  ['scheduling.k8s.io', 'PodGroup', 'podgroups', 'Namespaced', ['v1beta1', 'v1alpha2']],
  ['scheduling.k8s.io', 'Workload', 'workloads', 'Namespaced', ['v1beta1', 'v1alpha2', 'v1alpha1']],
  [
    'storagemigration.k8s.io',
    'StorageVersionMigration',
    'storageversionmigrations',
    'Cluster',
    ['v1', 'v1beta1', 'v1alpha1'],
  ],
]

const DOC = 'A kind that this server does not implement; there are no objects of it.'

/**
 * kubectl lists the definitions to explain an apiVersion that discovery does not contain. If the list is empty, kubectl
 * names the kind and version; if the request fails, kubectl reports only that it could not list the definitions.
 */
const customResourceDefinitionKind = defineForeignKind({
  group: 'apiextensions.k8s.io',
  versions: ['v1'],
  kind: 'CustomResourceDefinition',
  plural: 'customresourcedefinitions',
  namespaced: false,
  doc: DOC,
})

export const FOREIGN_KINDS: readonly Kind[] = [
  serviceKind,
  endpointsKind,
  endpointSliceKind,
  customResourceDefinitionKind,
  ...DECLARATIONS.map(([group, kind, plural, scope, versions]) =>
    defineForeignKind({ group, versions, kind, plural, namespaced: scope === 'Namespaced', doc: DOC }),
  ),
]

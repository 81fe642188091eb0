// Builds the objects of the comparison with upstream's sidecars: the class of csi-driver-host-path with its driver and node,
// bound claims with their volumes, pods, events, and new claims as the binder of kube-controller-manager prepares them for a
// provisioner.
import type { RequestText } from './load-role.ts'

const DRIVER = 'hostpath.csi.k8s.io'
export const DRIVER_NODE = 'node-0'
const TOPOLOGY_KEY = 'topology.hostpath.csi/node'
const CLASS = 'hostpath'

/** The class, the driver, and the node on which the driver is registered. */
export const setupRequests = (): RequestText[] => [
  {
    method: 'POST',
    path: '/apis/storage.k8s.io/v1/storageclasses',
    body: JSON.stringify({ metadata: { name: CLASS }, provisioner: DRIVER, allowVolumeExpansion: true }),
  },
  {
    method: 'POST',
    path: '/apis/storage.k8s.io/v1/csidrivers',
    body: JSON.stringify({ metadata: { name: DRIVER }, spec: { attachRequired: true } }),
  },
  {
    method: 'POST',
    path: '/api/v1/nodes',
    body: JSON.stringify({ metadata: { name: DRIVER_NODE, labels: { [TOPOLOGY_KEY]: DRIVER_NODE } } }),
  },
  {
    method: 'POST',
    path: '/apis/storage.k8s.io/v1/csinodes',
    body: JSON.stringify({
      metadata: { name: DRIVER_NODE },
      spec: { drivers: [{ name: DRIVER, nodeID: DRIVER_NODE, topologyKeys: [TOPOLOGY_KEY] }] },
    }),
  },
]

/** Returns two batches: creates, then status updates. Send them in order. */
export function boundClaimRequests(claims: number): RequestText[][] {
  const names = Array.from({ length: claims }, (_, number) => `bound-${number}`)
  const capacity = { storage: '1Gi' }
  return [
    names.flatMap((name) => [
      {
        method: 'POST',
        path: '/api/v1/namespaces/default/persistentvolumeclaims',
        body: JSON.stringify({
          metadata: { name, annotations: { ...PROVISIONER_ANNOTATIONS, 'pv.kubernetes.io/bind-completed': 'yes' } },
          spec: { ...claimSpec(), volumeName: `pv-${name}` },
        }),
      },
      { method: 'POST', path: '/api/v1/persistentvolumes', body: JSON.stringify(buildVolume(`pv-${name}`, name)) },
    ]),
    names.flatMap((name) => [
      {
        method: 'PATCH',
        path: `/api/v1/namespaces/default/persistentvolumeclaims/${name}/status`,
        body: JSON.stringify({ status: { phase: 'Bound', capacity, accessModes: ['ReadWriteOnce'] } }),
      },
      {
        method: 'PATCH',
        path: `/api/v1/persistentvolumes/pv-${name}/status`,
        body: JSON.stringify({ status: { phase: 'Bound' } }),
      },
    ]),
  ]
}

export const podRequests = (pods: number): RequestText[] =>
  Array.from({ length: pods }, (_, number) => ({
    method: 'POST',
    path: '/api/v1/namespaces/default/pods',
    body: JSON.stringify({
      metadata: { name: `pod-${number}`, labels: { app: 'shop', tier: 'web' } },
      spec: {
        nodeName: `node-${number % 50}`,
        containers: [
          {
            name: 'main',
            image: 'registry.example/shop/web:1.2.3',
            env: Array.from({ length: 8 }, (__, variable) => ({ name: `VARIABLE_${variable}`, value: 'value' })),
            volumeMounts: [{ name: 'data', mountPath: '/data' }],
          },
        ],
        volumes: [{ name: 'data', persistentVolumeClaim: { claimName: `bound-${number}` } }],
      },
    }),
  }))

export const newClaimRequests = (namespace: string, claims: number): RequestText[] =>
  Array.from({ length: claims }, (_, number) => ({
    method: 'POST',
    path: `/api/v1/namespaces/${namespace}/persistentvolumeclaims`,
    body: JSON.stringify({
      metadata: { name: `claim-${number}`, annotations: PROVISIONER_ANNOTATIONS },
      spec: claimSpec(),
    }),
  }))

const PROVISIONER_ANNOTATIONS = {
  'volume.beta.kubernetes.io/storage-provisioner': DRIVER,
  'volume.kubernetes.io/storage-provisioner': DRIVER,
}

const claimSpec = () => ({
  accessModes: ['ReadWriteOnce'],
  resources: { requests: { storage: '1Gi' } },
  storageClassName: CLASS,
})

/** Returns a volume as a provisioner creates it. */
export const buildVolume = (name: string, claim: string) => ({
  metadata: {
    name,
    annotations: {
      'pv.kubernetes.io/provisioned-by': DRIVER,
      'volume.kubernetes.io/provisioner-deletion-secret-name': '',
      'volume.kubernetes.io/provisioner-deletion-secret-namespace': '',
    },
    finalizers: ['external-provisioner.volume.kubernetes.io/finalizer'],
  },
  spec: {
    capacity: { storage: '1Gi' },
    accessModes: ['ReadWriteOnce'],
    claimRef: { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace: 'default', name: claim },
    csi: {
      driver: DRIVER,
      volumeHandle: `handle-of-${name}`,
      volumeAttributes: { 'storage.kubernetes.io/csiProvisionerIdentity': `1790000000000-1234-${DRIVER}` },
    },
    persistentVolumeReclaimPolicy: 'Delete',
    storageClassName: CLASS,
    volumeMode: 'Filesystem',
  },
})

/** Returns an event as a provisioner records it. */
export const buildEvent = (name: string, claim: string) => ({
  metadata: { name, namespace: 'default' },
  involvedObject: { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace: 'default', name: claim },
  type: 'Normal',
  reason: 'ProvisioningSucceeded',
  message: `Successfully provisioned volume pv-${claim}`,
  source: { component: DRIVER },
  reportingComponent: DRIVER,
  reportingInstance: DRIVER,
  count: 1,
  firstTimestamp: '2026-01-01T00:00:00Z',
  lastTimestamp: '2026-01-01T00:00:00Z',
})

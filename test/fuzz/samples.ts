// Generates small valid objects of every stored kind.
import type { Dice } from './dice.ts'

export interface ServedKind {
  readonly kind: string
  readonly plural: string
  /** Served versions such as `v1` or `group/v1`, preferred first. */
  readonly apiVersions: readonly string[]
  readonly namespaced: boolean
  readonly hasStatus: boolean
  /** Returns an object without apiVersion, kind and metadata.name. */
  sample(dice: Dice, namespace: string): any
  sampleStatus?(dice: Dice): any
}

const ACCESS_MODES = [['ReadWriteOnce'], ['ReadWriteMany', 'ReadOnlyMany'], ['ReadWriteOncePod']]
const SIZES = ['1Gi', '10Gi', '1.5Gi', '1000M', '5368709120', '1e10', '0.5Ti', '1025', '1000000001m']
const CLASSES = ['gold', 'silver', 'fast.example.com']
const DRIVERS = ['csi.example.com', 'Local.Stowage.io', 'hostpath']
const QUALIFIED_NAMES = ['example.com/owner', 'app', 'a.b.c/x_y', 'Tier']

/** A certification request of the node n1, in base64. */
export const SIGNING_REQUEST =
  'LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIcU1JR1NBZ0VBTURBeEZUQVRCZ05WQkFvTURITjVjM1JsYlRwdWIyUmxjek' +
  'VYTUJVR0ExVUVBd3dPYzNsegpkR1Z0T201dlpHVTZiakV3V1RBVEJnY3Foa2pPUFFJQkJnZ3Foa2pPUFFNQkJ3TkNBQVM2N3JQYUpIL3ZsbG0v' +
  'CnF1Q1VIUHFjcUt5eVdseGRIY0pnYyt1T1lqWjVUN1E4QTRPT2JaZFZCT3lub0kxZTFsbzFIeXorTXZNeWI4SzMKWXlvUnNvSzlvQUF3Q2dZSU' +
  'tvWkl6ajBFQXdJRFJ3QXdSQUlnRVJWL0xoemFpNVBEMVhsVEo3Wjd1YW5DeFJuRAozekNJRGJ6ZjZTejBnRm9DSUJYRCthQVhiYTU2RTJHV1pa' +
  'OUV1dldWU1FMeHJyekhFVjQ2dkZoSjZIZVcKLS0tLS1FTkQgQ0VSVElGSUNBVEUgUkVRVUVTVC0tLS0tCg=='

const RBAC_GROUP = 'rbac.authorization.k8s.io'
const rbac = { apiVersions: [`${RBAC_GROUP}/v1`], hasStatus: false }
const SUBJECTS = [
  { kind: 'User', name: 'ann' },
  { kind: 'Group', apiGroup: RBAC_GROUP, name: 'system:authenticated' },
  { kind: 'ServiceAccount', name: 'robot', namespace: 'default' },
]
const resourceRules = (dice: Dice) =>
  dice.subset([
    { verbs: ['get', 'list'], apiGroups: [''], resources: ['pods', 'pods/log'] },
    { verbs: ['*'], apiGroups: ['*'], resources: ['*'] },
    { verbs: ['update'], apiGroups: ['storage.k8s.io'], resources: ['*/status'], resourceNames: ['a'] },
  ])

const size = (dice: Dice) => dice.pick(SIZES)

export const metadataOf = (dice: Dice): any => ({
  ...dice.maybe({ labels: { [dice.pick(QUALIFIED_NAMES)]: dice.pick(['', 'x', 'blue-1', 'A.b_c']) } }),
  ...dice.maybe({
    annotations: { [dice.pick(QUALIFIED_NAMES)]: dice.pick(['', 'any text\nat all', '{"json":1}', 'ünïcode 💾']) },
  }),
  ...(dice.oneIn(6)
    ? { finalizers: [dice.pick(['example.com/hold', 'kubernetes.io/other', 'foregroundDeletion'])] }
    : {}),
  ...(dice.oneIn(8)
    ? {
        ownerReferences: [
          { apiVersion: 'apps/v1', kind: 'StatefulSet', name: 'db', uid: 'u-1', ...dice.maybe({ controller: true }) },
        ],
      }
    : {}),
})

const selector = (dice: Dice) =>
  dice.pick([
    {},
    { matchLabels: { disk: 'ssd' } },
    {
      matchExpressions: [
        { key: 'zone', operator: 'In', values: ['a', 'b'] },
        { key: 'x', operator: 'Exists' },
      ],
    },
  ])

const nodeTerms = (dice: Dice) => ({
  nodeSelectorTerms: [
    {
      matchExpressions: [
        dice.pick([
          { key: 'kubernetes.io/hostname', operator: 'In', values: ['n1'] },
          { key: 'rank', operator: 'Gt', values: ['3'] },
          { key: 'zone', operator: 'DoesNotExist' },
        ]),
      ],
    },
  ],
})

const io = (dice: Dice) =>
  dice.pick([
    {},
    {},
    { iops: '500' },
    { throughput: '100' },
    { iops: 3000, throughput: '50Mi' },
    { throughput: '1000M' },
  ])

const claimSpec = (dice: Dice) => ({
  accessModes: dice.pick(ACCESS_MODES),
  resources: { requests: { storage: size(dice), ...io(dice) }, ...dice.maybe({ limits: { storage: '100Gi' } }) },
  ...dice.maybe({ storageClassName: dice.pick(['', ...CLASSES]) }),
  ...dice.maybe({ volumeMode: dice.pick(['Filesystem', 'Block']) }),
  ...(dice.oneIn(4) ? { selector: selector(dice) } : {}),
  ...(dice.oneIn(4) ? { volumeAttributesClassName: dice.pick(['gold', '']) } : {}),
  ...dice.pick<object>([
    {},
    {},
    {},
    { dataSource: { kind: 'PersistentVolumeClaim', name: 'source' } },
    { dataSource: { apiGroup: 'unknown.example.com', kind: 'Backup', name: 'b' } }, // dropped
    { dataSourceRef: { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name: 'snap' } },
  ]),
})

const csi = (dice: Dice) => ({
  driver: dice.pick(DRIVERS),
  volumeHandle: 'vol-1',
  ...dice.maybe({ fsType: 'ext4', volumeAttributes: { tier: 'x' } }),
  ...dice.maybe({ controllerExpandSecretRef: { name: 's', namespace: 'default' } }),
})

const volumeSpec = (dice: Dice) => {
  const source = dice.pick(['csi', 'csi', 'hostPath', 'nfs', 'local'] as const)
  return {
    capacity: { storage: size(dice), ...dice.maybe({ iops: '500' }) },
    accessModes: dice.pick(ACCESS_MODES),
    ...dice.maybe({ persistentVolumeReclaimPolicy: dice.pick(['Retain', 'Delete', 'Recycle']) }),
    ...dice.maybe({ storageClassName: dice.pick(CLASSES) }),
    ...(source === 'local' || dice.oneIn(3) ? { nodeAffinity: { required: nodeTerms(dice) } } : {}),
    ...(source === 'csi' ? { csi: csi(dice), ...dice.maybe({ volumeAttributesClassName: 'gold' }) } : {}),
    ...(source === 'hostPath' ? { hostPath: { path: '/srv/data', ...dice.maybe({ type: 'Directory' }) } } : {}),
    ...(source === 'nfs' ? { nfs: { server: '10.0.0.1', path: '/export' } } : {}),
    ...(source === 'local' ? { local: { path: '/mnt/disk1' } } : {}),
  }
}

const podSpec = (dice: Dice) => ({
  containers: [
    {
      name: 'main',
      image: 'busybox:1.36',
      ...dice.maybe({ ports: [{ containerPort: 8080, name: 'http' }] }),
      ...dice.maybe({ env: [{ name: 'MODE', value: 'x' }] }),
      ...dice.maybe({ resources: { requests: { cpu: '0.5', memory: '64Mi' }, limits: { memory: '1Gi' } } }),
      volumeMounts: [{ name: 'data', mountPath: '/data' }],
    },
  ],
  volumes: [
    dice.pick<any>([
      { name: 'data', persistentVolumeClaim: { claimName: 'c0' } },
      { name: 'data', emptyDir: { sizeLimit: '1Gi' } },
      { name: 'data', ephemeral: { volumeClaimTemplate: { spec: claimSpec(dice) } } },
      { name: 'data', csi: { driver: 'csi.example.com' } },
    ]),
  ],
  ...dice.maybe({ tolerations: [{ key: 'dedicated', operator: 'Exists', effect: 'NoSchedule' }] }),
  ...dice.maybe({ nodeSelector: { disk: 'ssd' } }),
  ...(dice.oneIn(4)
    ? { affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: nodeTerms(dice) } } }
    : {}),
  ...(dice.oneIn(4) ? { schedulingGates: [{ name: 'example.com/wait' }] } : {}),
  ...dice.maybe({ activeDeadlineSeconds: 600 }),
})

/** Returns a spec whose selector matches the template. A claim template may replace the volume of the pods. */
const statefulSetSpec = (dice: Dice) => {
  const { activeDeadlineSeconds: _, ...spec } = podSpec(dice) // not supported in a stateful set
  return {
    selector: dice.pick([
      { matchLabels: { app: 'db' } },
      { matchLabels: { app: 'db' }, matchExpressions: [{ key: 'tier', operator: 'DoesNotExist' }] },
      { matchExpressions: [{ key: 'app', operator: 'In', values: ['db', 'web'] }] },
    ]),
    template: {
      metadata: { labels: { app: 'db' }, ...dice.maybe({ annotations: { 'example.com/note': 'any text' } }) },
      spec: { ...spec, ...dice.maybe({ restartPolicy: 'Always' }) },
    },
    ...dice.maybe({ replicas: dice.int(4) }),
    ...dice.maybe({ serviceName: 'db' }),
    ...dice.maybe({ volumeClaimTemplates: [{ metadata: { name: 'data' }, spec: claimSpec(dice) }] }),
    ...dice.maybe({ podManagementPolicy: dice.pick(['OrderedReady', 'Parallel']) }),
    ...dice.maybe({
      updateStrategy: dice.pick<object>([
        {},
        { type: 'OnDelete' },
        { type: 'RollingUpdate', rollingUpdate: { partition: dice.int(3) } },
        { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: dice.pick<unknown>([1, 3, '1%', '100%']) } },
      ]),
    }),
    ...dice.maybe({
      persistentVolumeClaimRetentionPolicy: {
        ...dice.maybe({ whenDeleted: dice.pick(['Retain', 'Delete']) }),
        ...dice.maybe({ whenScaled: dice.pick(['Retain', 'Delete']) }),
      },
    }),
    ...dice.maybe({ revisionHistoryLimit: dice.pick([-1, 0, 5]) }),
    ...dice.maybe({ minReadySeconds: dice.int(10) }),
    ...dice.maybe({ ordinals: { start: dice.int(5) } }),
  }
}

const condition = (dice: Dice) => ({
  type: dice.pick(['Resizing', 'Ready', 'ModifyingVolume']),
  status: dice.pick(['True', 'False']),
  lastTransitionTime: '2026-01-01T00:00:00Z',
  reason: 'Testing',
})

const coreEvent = (dice: Dice, namespace: string) => ({
  involvedObject: { kind: 'PersistentVolumeClaim', namespace, name: 'c0' },
  reason: 'Testing',
  message: 'a sentence',
  type: dice.pick(['Normal', 'Warning']),
  ...dice.pick<any>([
    { source: { component: 'x' }, firstTimestamp: '2026-01-01T00:00:00Z', count: 1 },
    {
      eventTime: '2026-01-01T00:00:00.000001Z',
      reportingComponent: 'example.com/x',
      reportingInstance: 'x-1',
      action: 'Test',
    },
  ]),
})

const core = { apiVersions: ['v1'] }
const apps = { apiVersions: ['apps/v1'] }
const storage = { apiVersions: ['storage.k8s.io/v1'] }

export const SERVED: readonly ServedKind[] = [
  {
    ...core,
    kind: 'PersistentVolumeClaim',
    plural: 'persistentvolumeclaims',
    namespaced: true,
    hasStatus: true,
    sample: (dice) => ({ metadata: metadataOf(dice), spec: claimSpec(dice) }),
    sampleStatus: (dice) => ({
      phase: dice.pick(['Bound', 'Bound', 'Bound', 'Pending', 'Lost']),
      accessModes: ['ReadWriteOnce'],
      capacity: { storage: size(dice), ...io(dice) },
      ...dice.maybe({ conditions: [condition(dice)] }),
      ...dice.maybe({ allocatedResources: { storage: size(dice) } }),
      ...dice.maybe({ allocatedResourceStatuses: { storage: 'NodeResizePending' } }),
      ...dice.maybe({ currentVolumeAttributesClassName: 'gold' }),
    }),
  },
  {
    ...core,
    kind: 'PersistentVolume',
    plural: 'persistentvolumes',
    namespaced: false,
    hasStatus: true,
    sample: (dice) => ({ metadata: metadataOf(dice), spec: volumeSpec(dice) }),
    sampleStatus: (dice) => ({
      phase: dice.pick(['Available', 'Bound', 'Released', 'Failed']),
      ...dice.maybe({ reason: 'x' }),
    }),
  },
  {
    kind: 'StorageClass',
    plural: 'storageclasses',
    apiVersions: ['storage.k8s.io/v1', 'storage.k8s.io/v1beta1'],
    namespaced: false,
    hasStatus: false,
    sample: (dice) => ({
      metadata: metadataOf(dice),
      provisioner: dice.pick(DRIVERS),
      ...dice.maybe({ parameters: { type: 'ssd' } }),
      ...dice.maybe({ reclaimPolicy: dice.pick(['Delete', 'Retain']) }),
      ...dice.maybe({ volumeBindingMode: dice.pick(['Immediate', 'WaitForFirstConsumer']) }),
      ...dice.maybe({ allowVolumeExpansion: !dice.oneIn(3) }),
      ...dice.maybe({ mountOptions: ['noatime'] }),
      ...dice.maybe({ allowedTopologies: [{ matchLabelExpressions: [{ key: 'zone', values: ['a', 'b'] }] }] }),
    }),
  },
  {
    kind: 'PriorityClass',
    plural: 'priorityclasses',
    apiVersions: ['scheduling.k8s.io/v1'],
    namespaced: false,
    hasStatus: false,
    sample: (dice) => ({
      metadata: metadataOf(dice),
      value: dice.pick([-2_147_483_648, -1, 0, 1000, 1_000_000_000]),
      ...(dice.oneIn(4) ? { globalDefault: true } : {}),
      ...dice.maybe({ description: 'for important pods' }),
      ...dice.maybe({ preemptionPolicy: dice.pick(['PreemptLowerPriority', 'Never']) }),
    }),
  },
  {
    kind: 'VolumeAttributesClass',
    plural: 'volumeattributesclasses',
    apiVersions: ['storage.k8s.io/v1', 'storage.k8s.io/v1beta1', 'storage.k8s.io/v1alpha1'],
    namespaced: false,
    hasStatus: false,
    sample: (dice) => ({
      metadata: metadataOf(dice),
      driverName: dice.pick(DRIVERS),
      parameters: dice.pick([{ iops: '1000' }, { tier: '', mode: 'x' }]),
    }),
  },
  {
    ...storage,
    kind: 'CSIDriver',
    plural: 'csidrivers',
    namespaced: false,
    hasStatus: false,
    sample: (dice) => ({
      metadata: metadataOf(dice),
      spec: {
        ...dice.maybe({ attachRequired: false }),
        ...dice.maybe({ storageCapacity: true }),
        ...dice.maybe({ volumeLifecycleModes: ['Persistent', 'Ephemeral'] }),
        ...dice.maybe({ fsGroupPolicy: 'File' }),
        ...dice.maybe({ tokenRequests: [{ audience: 'a', expirationSeconds: 3600 }, { audience: '' }] }),
        ...dice.maybe({ nodeAllocatableUpdatePeriodSeconds: 10 }),
      },
    }),
  },
  {
    ...storage,
    kind: 'CSINode',
    plural: 'csinodes',
    namespaced: false,
    hasStatus: true,
    sample: (dice) => ({
      metadata: metadataOf(dice),
      spec: {
        drivers: dice.subset(DRIVERS).map((name) => ({
          name,
          nodeID: 'n1',
          topologyKeys: dice.pick([[], ['topology.example.com/node'], ['zone', 'rack']]),
          ...dice.maybe({ allocatable: { count: dice.int(64) } }),
        })),
      },
    }),
    sampleStatus: () => ({
      storageHealth: [{ name: 'hostpath', healthConditions: [{ status: 'StorageDegraded', reason: 'Slow' }] }],
    }),
  },
  {
    kind: 'CSIStorageCapacity',
    plural: 'csistoragecapacities',
    ...storage,
    namespaced: true,
    hasStatus: false,
    sample: (dice) => ({
      metadata: metadataOf(dice),
      storageClassName: dice.pick(CLASSES),
      ...dice.maybe({ nodeTopology: selector(dice) }),
      ...dice.maybe({ capacity: size(dice) }),
      ...dice.maybe({ maximumVolumeSize: size(dice) }),
    }),
  },
  {
    ...storage,
    kind: 'VolumeAttachment',
    plural: 'volumeattachments',
    namespaced: false,
    hasStatus: true,
    sample: (dice) => ({
      metadata: metadataOf(dice),
      spec: { attacher: dice.pick(DRIVERS), nodeName: 'n1', source: { persistentVolumeName: 'pv0' } },
    }),
    sampleStatus: (dice) => ({
      attached: dice.oneIn(2),
      ...dice.maybe({ attachmentMetadata: { device: '/dev/sdb' } }),
      ...dice.maybe({ attachError: { time: '2026-01-01T00:00:00Z', message: 'no' } }),
    }),
  },
  {
    ...core,
    kind: 'Node',
    plural: 'nodes',
    namespaced: false,
    hasStatus: true,
    sample: (dice) => ({
      metadata: metadataOf(dice),
      spec: {
        ...dice.maybe({ taints: [{ key: 'dedicated', value: 'db', effect: 'NoSchedule' }] }),
        ...dice.maybe({ podCIDR: '10.1.0.0/24', podCIDRs: ['10.1.0.0/24'] }),
        ...dice.maybe({ unschedulable: true }),
        ...dice.maybe({ providerID: 'x://1' }),
      },
      ...dice.maybe({ status: { capacity: { cpu: '4', memory: '8Gi', pods: '110' } } }),
    }),
    sampleStatus: (dice) => ({
      capacity: { cpu: '4', memory: '8Gi', 'example.com/gpu': '2' },
      conditions: [condition(dice)],
      addresses: [{ type: 'InternalIP', address: '10.0.0.7' }],
      volumesInUse: ['kubernetes.io/csi/x^1'],
    }),
  },
  {
    ...core,
    kind: 'Pod',
    plural: 'pods',
    namespaced: true,
    hasStatus: true,
    sample: (dice) => ({ metadata: metadataOf(dice), spec: podSpec(dice) }),
    sampleStatus: (dice) => ({
      phase: dice.pick(['Pending', 'Running', 'Succeeded', 'Failed']),
      conditions: [condition(dice)],
      ...dice.maybe({ message: 'x' }),
    }),
  },
  {
    ...apps,
    kind: 'StatefulSet',
    plural: 'statefulsets',
    namespaced: true,
    hasStatus: true,
    sample: (dice) => ({ metadata: metadataOf(dice), spec: statefulSetSpec(dice) }),
    sampleStatus: (dice) => {
      const readyReplicas = dice.int(3)
      return {
        replicas: readyReplicas + dice.int(2),
        readyReplicas,
        availableReplicas: dice.int(readyReplicas + 1),
        ...dice.maybe({ currentReplicas: dice.int(readyReplicas + 1), currentRevision: 'db-1' }),
        ...dice.maybe({ updatedReplicas: dice.int(readyReplicas + 1), updateRevision: 'db-2' }),
        ...dice.maybe({ observedGeneration: 1 }),
        ...dice.maybe({ collisionCount: dice.int(3) }),
        ...dice.maybe({ conditions: [condition(dice)] }),
      }
    },
  },
  {
    ...apps,
    kind: 'ControllerRevision',
    plural: 'controllerrevisions',
    namespaced: true,
    hasStatus: false,
    sample: (dice) => ({
      metadata: metadataOf(dice),
      data: dice.pick<object>([
        {},
        { spec: { template: { $patch: 'replace', metadata: { labels: { app: 'db' } }, spec: { containers: [] } } } },
        { any: [1, 'text', null, { nested: true }], capacity: 'no quantity' }, // not interpreted
      ]),
      revision: dice.pick([0, 1, 7, 2 ** 40]),
    }),
  },
  {
    ...core,
    kind: 'ResourceQuota',
    plural: 'resourcequotas',
    namespaced: true,
    hasStatus: true,
    sample: (dice) => ({
      metadata: metadataOf(dice),
      spec: dice.pick<any>([
        { hard: { 'requests.storage': '100Ti', persistentvolumeclaims: '1000' } },
        { hard: { 'limits.iops': '20000000', 'requests.throughput': '2000000' } },
        { hard: { 'gold.storageclass.storage.k8s.io/requests.storage': '50Ti' } },
        { hard: { persistentvolumeclaims: '500' }, scopes: ['VolumeAttributesClass'] },
        {
          hard: { 'requests.storage': '10Ti' },
          scopeSelector: {
            matchExpressions: [{ scopeName: 'VolumeAttributesClass', operator: 'In', values: ['gold'] }],
          },
        },
        { hard: { pods: '1000', 'limits.cpu': '2000' } },
      ]),
    }),
    sampleStatus: () => ({ hard: { pods: '10' }, used: { pods: '1' } }),
  },
  {
    ...core,
    kind: 'LimitRange',
    plural: 'limitranges',
    namespaced: true,
    hasStatus: false,
    sample: (dice) => ({
      metadata: metadataOf(dice),
      spec: {
        limits: [
          dice.pick<any>([
            { type: 'PersistentVolumeClaim', min: { storage: '1' }, max: { storage: '900Ti' } },
            { type: 'PersistentVolumeClaim', max: { iops: '1000000' } },
            { type: 'Container', default: { cpu: '1' }, defaultRequest: { cpu: '100m' }, max: { cpu: '400' } },
            { type: 'Pod', max: { memory: '1Ti' }, maxLimitRequestRatio: { cpu: '10' } },
          ]),
        ],
      },
    }),
  },
  {
    ...core,
    kind: 'Secret',
    plural: 'secrets',
    namespaced: true,
    hasStatus: false,
    sample: (dice) => ({
      metadata: metadataOf(dice),
      ...dice.pick<any>([
        { data: { key: 'dmFsdWU=' }, stringData: { other: 'text' } },
        { type: 'kubernetes.io/basic-auth', stringData: { username: 'u' } },
        { type: 'kubernetes.io/dockerconfigjson', stringData: { '.dockerconfigjson': '{"auths":{}}' } },
        { type: 'kubernetes.io/tls', stringData: { 'tls.crt': 'c', 'tls.key': 'k' } },
        { type: 'example.com/any', ...(dice.oneIn(6) ? { immutable: true } : {}) },
      ]),
    }),
  },
  {
    ...core,
    kind: 'ConfigMap',
    plural: 'configmaps',
    namespaced: true,
    hasStatus: false,
    sample: (dice) => ({
      metadata: metadataOf(dice),
      data: { 'app.yaml': 'a: 1\n', KEY: '' },
      ...dice.maybe({ binaryData: { blob: 'AAEC' } }),
      ...(dice.oneIn(6) ? { immutable: true } : {}),
    }),
  },
  {
    ...core,
    kind: 'ServiceAccount',
    plural: 'serviceaccounts',
    namespaced: true,
    hasStatus: false,
    sample: (dice) => ({ metadata: metadataOf(dice), ...dice.maybe({ secrets: [{ name: 's' }] }) }),
  },
  {
    ...rbac,
    kind: 'Role',
    plural: 'roles',
    namespaced: true,
    sample: (dice) => ({ metadata: metadataOf(dice), rules: resourceRules(dice) }),
  },
  {
    ...rbac,
    kind: 'ClusterRole',
    plural: 'clusterroles',
    namespaced: false,
    sample: (dice) => ({
      metadata: metadataOf(dice),
      rules: [...resourceRules(dice), ...(dice.oneIn(2) ? [{ verbs: ['get'], nonResourceURLs: ['/metrics'] }] : [])],
      ...(dice.oneIn(4) ? { aggregationRule: { clusterRoleSelectors: [selector(dice)] } } : {}),
    }),
  },
  {
    ...rbac,
    kind: 'RoleBinding',
    plural: 'rolebindings',
    namespaced: true,
    sample: (dice) => ({
      metadata: metadataOf(dice),
      roleRef: { kind: dice.pick(['Role', 'ClusterRole']), name: dice.pick(['view', 'system:x']) },
      subjects: dice.subset(SUBJECTS),
    }),
  },
  {
    ...rbac,
    kind: 'ClusterRoleBinding',
    plural: 'clusterrolebindings',
    namespaced: false,
    sample: (dice) => ({
      metadata: metadataOf(dice),
      roleRef: { apiGroup: RBAC_GROUP, kind: 'ClusterRole', name: 'view' },
      ...dice.maybe({ subjects: dice.subset(SUBJECTS) }),
    }),
  },
  {
    kind: 'CertificateSigningRequest',
    plural: 'certificatesigningrequests',
    apiVersions: ['certificates.k8s.io/v1'],
    namespaced: false,
    hasStatus: true,
    sample: (dice) => ({
      metadata: metadataOf(dice),
      spec: {
        request: SIGNING_REQUEST,
        signerName: dice.pick(['kubernetes.io/kube-apiserver-client', 'example.com/signer']),
        usages: dice.pick([['client auth'], ['digital signature', 'key encipherment', 'server auth']]),
        ...dice.maybe({ expirationSeconds: 600 + dice.int(10) }),
      },
    }),
    sampleStatus: (dice) => ({
      conditions: [
        { type: dice.pick(['Failed', 'Seen']), status: 'True', ...dice.maybe({ reason: 'R', message: 'm' }) },
      ],
    }),
  },
  {
    kind: 'Lease',
    plural: 'leases',
    apiVersions: ['coordination.k8s.io/v1'],
    namespaced: true,
    hasStatus: false,
    sample: (dice) => ({
      metadata: metadataOf(dice),
      spec: {
        holderIdentity: 'me',
        leaseDurationSeconds: 15,
        renewTime: '2026-01-01T00:00:00.123456Z',
        leaseTransitions: dice.int(3),
        ...dice.maybe({ strategy: 'OldestEmulationVersion', preferredHolder: 'you' }),
      },
    }),
  },
  {
    ...core,
    kind: 'Namespace',
    plural: 'namespaces',
    namespaced: false,
    hasStatus: true,
    sample: (dice) => ({ metadata: metadataOf(dice) }),
    sampleStatus: (dice) => ({ phase: 'Active', conditions: [condition(dice)] }),
  },
  {
    ...core,
    kind: 'Event',
    plural: 'events',
    namespaced: true,
    hasStatus: false,
    sample: (dice, namespace) => ({ metadata: metadataOf(dice), ...coreEvent(dice, namespace) }),
  },
  {
    kind: 'Event',
    plural: 'events',
    apiVersions: ['events.k8s.io/v1'],
    namespaced: true,
    hasStatus: false,
    sample: (dice, namespace) => ({
      metadata: metadataOf(dice),
      regarding: { kind: 'Pod', namespace, name: 'p0' },
      eventTime: '2026-01-01T00:00:00.000001Z',
      reportingController: 'example.com/x',
      reportingInstance: 'x-1',
      action: 'Test',
      reason: 'Testing',
      note: 'a sentence',
      type: dice.pick(['Normal', 'Warning']),
      ...dice.maybe({ series: { count: 2, lastObservedTime: '2026-01-01T00:00:01.000000Z' } }),
    }),
  },
]

export const collectionPath = (apiVersion: string, { plural, namespaced }: ServedKind, namespace: string): string =>
  `/${apiVersion === 'v1' ? 'api' : 'apis'}/${apiVersion}${namespaced ? `/namespaces/${namespace}` : ''}/${plural}`

// Tests that the independent validator accepts valid objects and reports invalid ones.
import { describe, expect, it } from 'vitest'
import { check } from './index.ts'
import { isDnsSubdomain, isFileKey, isLabelValue, isQualifiedName } from './names.ts'
import { compare, formatQuantity, parseQuantity } from './quantity.ts'
import { isMicroTime, isTime } from './times.ts'

const meta = (fields: object = {}) => ({
  name: 'a',
  uid: '00000000-0000-4000-8000-000000000001',
  creationTimestamp: '2026-01-01T00:00:00Z',
  resourceVersion: '7',
  ...fields,
})
const claim = (spec: object = {}, status: object = { phase: 'Pending' }, metadata: object = {}) => ({
  kind: 'PersistentVolumeClaim',
  apiVersion: 'v1',
  metadata: meta({ namespace: 'shop', finalizers: ['kubernetes.io/pvc-protection'], ...metadata }),
  spec: {
    accessModes: ['ReadWriteOnce'],
    resources: { requests: { storage: '10Gi' } },
    volumeMode: 'Filesystem',
    ...spec,
  },
  status,
})
const size = (storage: string) => ({ resources: { requests: { storage } } })
const boundStatus = { phase: 'Bound', capacity: { storage: '10Gi' } }
const volume = (spec: object = {}) => ({
  kind: 'PersistentVolume',
  apiVersion: 'v1',
  metadata: meta({ finalizers: ['kubernetes.io/pv-protection'] }),
  spec: {
    capacity: { storage: '1Gi' },
    accessModes: ['ReadWriteOnce'],
    persistentVolumeReclaimPolicy: 'Retain',
    volumeMode: 'Filesystem',
    csi: { driver: 'csi.example.com', volumeHandle: 'v' },
    ...spec,
  },
  status: { phase: 'Pending', lastPhaseTransitionTime: '2026-01-01T00:00:00Z' },
})
const storageClass = (fields: object = {}) => ({
  kind: 'StorageClass',
  apiVersion: 'storage.k8s.io/v1',
  metadata: meta(),
  provisioner: 'csi.example.com',
  reclaimPolicy: 'Delete',
  volumeBindingMode: 'Immediate',
  ...fields,
})
const secret = (fields: object = {}) => ({
  kind: 'Secret',
  apiVersion: 'v1',
  metadata: meta({ namespace: 'shop' }),
  type: 'Opaque',
  ...fields,
})
const statefulSet = (spec: object = {}, status: object = { replicas: 0, availableReplicas: 0 }) => ({
  kind: 'StatefulSet',
  apiVersion: 'apps/v1',
  metadata: meta({ namespace: 'shop', generation: 1 }),
  spec: {
    replicas: 1,
    revisionHistoryLimit: 10,
    podManagementPolicy: 'OrderedReady',
    persistentVolumeClaimRetentionPolicy: { whenDeleted: 'Retain', whenScaled: 'Retain' },
    updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition: 0, maxUnavailable: 1 } },
    selector: { matchLabels: { app: 'db' } },
    template: podTemplate(),
    volumeClaimTemplates: [
      {
        metadata: { name: 'data' },
        spec: { accessModes: ['ReadWriteOnce'], volumeMode: 'Filesystem', ...size('10G') },
        status: { phase: 'Pending' },
      },
    ],
    ...spec,
  },
  status,
})
const podTemplate = (spec: object = {}) => ({
  metadata: { labels: { app: 'db' } },
  spec: {
    containers: [
      {
        name: 'main',
        image: 'busybox',
        imagePullPolicy: 'Always',
        terminationMessagePath: '/dev/termination-log',
        terminationMessagePolicy: 'File',
        volumeMounts: [{ name: 'data', mountPath: '/data' }],
      },
    ],
    restartPolicy: 'Always',
    dnsPolicy: 'ClusterFirst',
    terminationGracePeriodSeconds: 30,
    schedulerName: 'default-scheduler',
    securityContext: {},
    ...spec,
  },
})
const rollingUpdate = (fields: object) => ({
  updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition: 0, maxUnavailable: 1, ...fields } },
})
const revision = (fields: object = {}) => ({
  kind: 'ControllerRevision',
  apiVersion: 'apps/v1',
  metadata: meta({ namespace: 'shop' }),
  data: { spec: { any: null } },
  revision: 1,
  ...fields,
})

describe('valid objects', () => {
  it.each([
    ['a new claim', check('PersistentVolumeClaim', claim())],
    [
      'a bound claim that grows',
      check('PersistentVolumeClaim', claim(size('20Gi'), boundStatus), claim({}, boundStatus)),
    ],
    [
      'a request lowered to the capacity',
      check('PersistentVolumeClaim', claim({}, boundStatus), claim(size('20Gi'), boundStatus)),
    ],
    ['a volume', check('PersistentVolume', volume())],
    ['a class', check('StorageClass', storageClass())],
    ['a secret', check('Secret', secret({ data: { k: 'dmFsdWU=' } }))],
    ['a stateful set', check('StatefulSet', statefulSet())],
    [
      'a scaled stateful set with a percentage',
      check('StatefulSet', statefulSet({ replicas: 3, ...rollingUpdate({ maxUnavailable: '50%' }) }), statefulSet()),
    ],
    ['a revision with null in its data', check('ControllerRevision', revision())],
  ])('%s passes', (_, findings) => expect(findings).toEqual([]))
})

describe('invalid objects', () => {
  it.each<[string, string[], RegExp]>([
    ['a name in capitals', check('StorageClass', storageClass({ metadata: meta({ name: 'A' }) })), /^metadata\.name/],
    [
      'a cluster object in a namespace',
      check('StorageClass', storageClass({ metadata: meta({ namespace: 'x' }) })),
      /namespace/,
    ],
    [
      'a label value with a space',
      check('StorageClass', storageClass({ metadata: meta({ labels: { a: 'b c' } }) })),
      /labels/,
    ],
    [
      'a finalizer without a domain',
      check('StorageClass', storageClass({ metadata: meta({ finalizers: ['x'] }) })),
      /finalizers/,
    ],
    [
      'a UID that changed',
      check('StorageClass', storageClass(), storageClass({ metadata: meta({ uid: 'x' }) })),
      /metadata\.uid/,
    ],
    ['a null', check('StorageClass', storageClass({ mountOptions: null })), /null/],
    [
      'a time with an offset',
      check('StorageClass', storageClass({ metadata: meta({ creationTimestamp: '2026-01-01T00:00:00+01:00' }) })),
      /is not a UTC time/,
    ],
    [
      'a quantity that is not canonical',
      check('PersistentVolumeClaim', claim(size('1024Mi'))),
      /should be formatted as 1Gi/,
    ],
    ['a claim for zero bytes', check('PersistentVolumeClaim', claim(size('0'))), /is not a valid size/],
    [
      'throughput in MiB/s',
      check('PersistentVolumeClaim', claim({ resources: { requests: { storage: '1Gi', throughput: '100' } } })),
      /bytes per second/,
    ],
    [
      'a high-water mark below the request',
      check('PersistentVolumeClaim', claim({ allocatedResources: { storage: '1Gi' } })),
      /allocatedResources/,
    ],
    [
      'a high-water mark that fell',
      check(
        'PersistentVolumeClaim',
        claim({ allocatedResources: { storage: '10Gi' } }, boundStatus),
        claim({ ...size('20Gi'), allocatedResources: { storage: '20Gi' } }, boundStatus),
      ),
      /highest request/,
    ],
    [
      'a request below the capacity',
      check('PersistentVolumeClaim', claim(size('5Gi'), boundStatus), claim({}, boundStatus)),
      /less than the capacity/,
    ],
    ['an unbound claim that grows', check('PersistentVolumeClaim', claim(size('20Gi')), claim()), /cannot change/],
    [
      'a current class that is removed',
      check(
        'PersistentVolumeClaim',
        claim({}, { ...boundStatus, currentVolumeAttributesClassName: 'gold' }),
        claim({ volumeAttributesClassName: 'gold' }, { ...boundStatus, currentVolumeAttributesClassName: 'gold' }),
      ),
      /cannot be removed/,
    ],
    ['a volume with two sources', check('PersistentVolume', volume({ nfs: { server: 's', path: '/' } })), /one source/],
    [
      'a volume whose source changed',
      check('PersistentVolume', volume(), volume({ csi: { driver: 'other', volumeHandle: 'v' } })),
      /source cannot change/,
    ],
    [
      'a class whose parameters changed',
      check('StorageClass', storageClass(), storageClass({ parameters: { a: 'b' } })),
      /parameters: cannot change/,
    ],
    ['a secret whose type changed', check('Secret', secret(), secret({ type: 'other' })), /type/],
    ['a secret that shows stringData', check('Secret', secret({ stringData: { a: 'b' } })), /stringData/],
    ['a key that leaves its directory', check('Secret', secret({ data: { '../x': '' } })), /is not a valid key/],
    ['a negative number of replicas', check('StatefulSet', statefulSet({ replicas: -1 })), /spec\.replicas/],
    [
      'a stateful set that does not select its pods',
      check(
        'StatefulSet',
        statefulSet({ selector: { matchExpressions: [{ key: 'app', operator: 'NotIn', values: ['db'] }] } }),
      ),
      /not selected/,
    ],
    [
      'a mount of a volume that no claim template provides',
      check('StatefulSet', statefulSet({ volumeClaimTemplates: [] })),
      /spec\.template\.spec\.containers\[0\]\.volumeMounts\[0\]/,
    ],
    [
      'a template that does not restart its containers',
      check('StatefulSet', statefulSet({ template: podTemplate({ restartPolicy: 'Never' }) })),
      /must be Always/,
    ],
    [
      'an unavailable percentage above 100',
      check('StatefulSet', statefulSet(rollingUpdate({ maxUnavailable: '101%' }))),
      /maxUnavailable/,
    ],
    [
      'a claim template that changed',
      check('StatefulSet', statefulSet({ volumeClaimTemplates: [] }), statefulSet()),
      /volumeClaimTemplates: cannot change/,
    ],
    [
      'a stateful set whose service changed',
      check('StatefulSet', statefulSet({ serviceName: 'b' }), statefulSet({ serviceName: 'a' })),
      /serviceName: cannot change/,
    ],
    [
      'more ready than existing replicas',
      check('StatefulSet', statefulSet({}, { replicas: 1, readyReplicas: 2 }), statefulSet()),
      /readyReplicas: more than replicas/,
    ],
    ['a negative revision', check('ControllerRevision', revision({ revision: -1 })), /^revision/],
    ['a revision without an object', check('ControllerRevision', revision({ data: [] })), /is not an object/],
    [
      'a revision whose data changed',
      check('ControllerRevision', revision(), revision({ data: {} })),
      /data: cannot change/,
    ],
    ['an unknown kind', check('Gadget', {}), /no validator/],
  ])('%s is reported', (_, findings, expected) => expect(findings.join('\n')).toMatch(expected))
})

describe('quantities', () => {
  it.each([
    ['1000M', '1G'],
    ['1000Mi', '1000Mi'],
    ['1.5Gi', '1536Mi'],
    ['160000', '160k'],
    ['1500', '1500'],
    ['0.5', '500m'],
    ['1e4', '10e3'],
    ['512Ki', '512Ki'],
    ['1000Ki', '1000Ki'],
    ['0.5Ki', '512'],
    ['-1Gi', '-1Gi'],
    ['0.0000000001', '1n'],
  ])('%s is formatted as %s', (text, expected) => expect(formatQuantity(parseQuantity(text)!)).toBe(expected))

  it('are compared by value if their suffixes differ', () => {
    expect(compare('1Gi', '1073741824')).toBe(0)
    expect(compare('1G', '1Gi')).toBe(-1)
  })

  it.each(['', '1 Gi', '1gi', 'Gi', '1e', '0x1', '--1', '1.2.3', '100MiB/s'])('%j is rejected', (text) =>
    expect(parseQuantity(text)).toBeUndefined(),
  )
})

describe('checks of names and times', () => {
  it('accept valid and reject invalid characters', () => {
    expect([
      isDnsSubdomain('a.b-c'),
      isDnsSubdomain('a..b'),
      isDnsSubdomain('a\n'),
      isDnsSubdomain('a'.repeat(254)),
    ]).toEqual([true, false, false, false])
    expect([isQualifiedName('x.y/Z_1'), isQualifiedName('/x'), isQualifiedName('a/b/c')]).toEqual([true, false, false])
    expect([isLabelValue(''), isLabelValue('a b'), isFileKey('..a'), isFileKey('.a')]).toEqual([
      true,
      false,
      false,
      true,
    ])
    expect([
      isTime('2024-02-29T23:59:59Z'),
      isTime('2023-02-29T00:00:00Z'),
      isMicroTime('2026-01-01T00:00:00.000001Z'),
    ]).toEqual([true, false, true])
  })
})

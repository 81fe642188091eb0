import { describe, expect, it } from 'vitest'
import { type Draft, tryCreate, tryStatus, tryUpdate } from '../try-write.fixture.ts'
import { readScale } from './scale.ts'
import { statefulSetKind as kind } from './stateful-set.ts'

const claim = {
  metadata: { name: 'data' },
  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
}
const podSpec = {
  containers: [{ name: 'main', image: 'busybox', volumeMounts: [{ name: 'data', mountPath: '/data' }] }],
}

const createBody = (spec: object = {}, pod: object = {}) => ({
  metadata: { name: 'web', namespace: 'default' },
  spec: {
    selector: { matchLabels: { app: 'web' } },
    template: { metadata: { labels: { app: 'web' } }, spec: { ...podSpec, ...pod } },
    volumeClaimTemplates: [claim],
    ...spec,
  },
})
const rollingUpdate = (fields: object) => ({ updateStrategy: { type: 'RollingUpdate', rollingUpdate: fields } })

describe('a stateful set', () => {
  it('SYS-27 has the Kubernetes defaults, including those of its templates', () => {
    const { object, errors } = tryCreate(kind, createBody())
    expect(errors).toEqual([])
    expect(object.spec).toMatchObject({
      replicas: 1,
      podManagementPolicy: 'OrderedReady',
      updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition: 0, maxUnavailable: 1 } },
      revisionHistoryLimit: 10,
      persistentVolumeClaimRetentionPolicy: { whenDeleted: 'Retain', whenScaled: 'Retain' },
      template: { spec: { restartPolicy: 'Always', terminationGracePeriodSeconds: 30, dnsPolicy: 'ClusterFirst' } },
      volumeClaimTemplates: [{ spec: { volumeMode: 'Filesystem' }, status: { phase: 'Pending' } }],
    })
    expect(object.status).toEqual({ replicas: 0, availableReplicas: 0 })
  })

  it.each<[string, object, object?]>([
    [
      'an apiVersion and kind in a claim template',
      { volumeClaimTemplates: [{ apiVersion: 'v1', kind: 'PersistentVolumeClaim', ...claim }] },
    ],
    ['a percentage as maxUnavailable', rollingUpdate({ maxUnavailable: '100%' })],
    ['OnDelete', { updateStrategy: { type: 'OnDelete' } }],
    ['a host name in the template, which the controller replaces', {}, { hostname: 'Not_Valid' }],
    ['a claim template that overrides a volume', {}, { volumes: [{ name: 'data', emptyDir: {} }] }],
  ])('SYS-27 accepts %s', (_case, spec, pod) => {
    expect(tryCreate(kind, createBody(spec, pod)).errors).toEqual([])
  })

  it.each<[string, object, object?]>([
    ['spec.replicas: Invalid value: -1: must be greater than or equal to 0', { replicas: -1 }],
    ['spec.minReadySeconds: Invalid value: -1: must be greater than or equal to 0', { minReadySeconds: -1 }],
    ['spec.ordinals.start: Invalid value: -1: must be greater than or equal to 0', { ordinals: { start: -1 } }],
    [
      "spec.podManagementPolicy: Invalid value: \"Any\": must be 'OrderedReady' or 'Parallel'",
      { podManagementPolicy: 'Any' },
    ],
    [
      'spec.updateStrategy: Invalid value: {"type":"Recreate"}: must be \'RollingUpdate\' or \'OnDelete\'',
      { updateStrategy: { type: 'Recreate' } },
    ],
    [
      'spec.updateStrategy.rollingUpdate: Invalid value: {"partition":1}: only allowed for updateStrategy \'RollingUpdate\'',
      { updateStrategy: { type: 'OnDelete', rollingUpdate: { partition: 1 } } },
    ],
    [
      'spec.updateStrategy.rollingUpdate.partition: Invalid value: -1: must be greater than or equal to 0',
      rollingUpdate({ partition: -1 }),
    ],
    [
      'spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value: 0: cannot be 0',
      rollingUpdate({ maxUnavailable: 0 }),
    ],
    [
      'spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value: "101%": must not be greater than 100%',
      rollingUpdate({ maxUnavailable: '101%' }),
    ],
    [
      'spec.persistentVolumeClaimRetentionPolicy.whenScaled: Unsupported value: "Keep": supported values: "Retain", "Delete"',
      { persistentVolumeClaimRetentionPolicy: { whenScaled: 'Keep' } },
    ],
    [
      'spec.volumeClaimTemplates[0].spec.accessModes: Required value: at least 1 access mode is required',
      { volumeClaimTemplates: [{ ...claim, spec: { ...claim.spec, accessModes: [] } }] },
    ],
    [
      'spec.template.metadata.labels: Invalid value: {"app":"web"}: `selector` does not match template `labels`',
      { selector: { matchLabels: { app: 'db' } } },
    ],
    [
      'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"',
      {},
      { restartPolicy: 'Never' },
    ],
    [
      'spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in StatefulSet is not Supported',
      {},
      { activeDeadlineSeconds: 5 },
    ],
    ['spec.template.spec.containers: Required value', {}, { containers: [] }],
    ['spec.selector: Invalid value: {}: empty selector is invalid for statefulset', { selector: {} }],
  ])('SYS-27 rejects: %s', (message, spec, pod) => {
    expect(tryCreate(kind, createBody(spec, pod)).errors).toEqual([message])
  })

  it('SYS-27 requires a selector', () => {
    expect(tryCreate(kind, createBody({ selector: undefined })).errors[0]).toBe('spec.selector: Required value')
  })

  it.each(['Web', 'a.b'])('SYS-27 requires a DNS label as its name, not %s', (name) => {
    expect(kind.nameErrors(name)).not.toEqual([])
  })

  const storedSet = tryCreate(kind, createBody({ serviceName: 'web' })).object

  it.each<[string, (draft: Draft) => void]>([
    [
      'spec.selector: Invalid value: {"matchLabels":{"app":"web"},"matchExpressions":[{"key":"app","operator":"Exists"}]}: field is immutable',
      (draft) => (draft.spec.selector.matchExpressions = [{ key: 'app', operator: 'Exists' }]),
    ],
    [
      'spec.volumeClaimTemplates: Invalid value: null: field is immutable',
      (draft) => {
        delete draft.spec.volumeClaimTemplates
        draft.spec.template.spec.containers[0].volumeMounts = []
      },
    ],
    ['spec.serviceName: Invalid value: "other": field is immutable', (draft) => (draft.spec.serviceName = 'other')],
    [
      'spec.podManagementPolicy: Invalid value: "Parallel": field is immutable',
      (draft) => (draft.spec.podManagementPolicy = 'Parallel'),
    ],
  ])('SYS-27 cannot change: %s', (message, change) => {
    expect(tryUpdate(kind, storedSet, change).errors).toEqual([message])
  })

  it('SYS-27 can change replicas, ordinals, template, strategy, retention, minReadySeconds and history', () => {
    const { errors } = tryUpdate(kind, storedSet, ({ spec }) => {
      spec.replicas = 5
      spec.ordinals = { start: 1 }
      spec.template.spec.containers[0].image = 'other'
      spec.updateStrategy = { type: 'OnDelete' }
      spec.persistentVolumeClaimRetentionPolicy.whenScaled = 'Delete'
      spec.minReadySeconds = 3
      spec.revisionHistoryLimit = 1
    })
    expect(errors).toEqual([])
  })

  it.each<[string, object]>([
    [
      'status.readyReplicas: Invalid value: 2: cannot be greater than status.replicas',
      { replicas: 1, readyReplicas: 2 },
    ],
    [
      'status.availableReplicas: Invalid value: 1: cannot be greater than status.readyReplicas',
      { replicas: 1, availableReplicas: 1 },
    ],
    ['status.replicas: Invalid value: -1: must be greater than or equal to 0', { replicas: -1 }],
  ])('SYS-27 rejects: %s', (message, status) => {
    expect(tryStatus(kind, storedSet, (draft) => (draft.status = status)).errors).toContain(message)
  })

  it('always has the counters of Kubernetes in its status', () => {
    const { object, errors } = tryStatus(kind, storedSet, (draft) => delete draft.status)
    expect(errors).toEqual([])
    expect(object.status).toEqual({ replicas: 0, availableReplicas: 0 })
  })

  it('causes a warning if its history has no limit', () => {
    expect(tryCreate(kind, createBody({ revisionHistoryLimit: -1 })).warnings).toHaveLength(1)
  })

  it('has a scale and table rows as in Kubernetes', () => {
    const set = { ...storedSet, status: { replicas: 3, readyReplicas: 2 } }
    expect(readScale(set)).toMatchObject({ spec: { replicas: 1 }, status: { replicas: 3, selector: 'app=web' } })
    expect(kind.columns.map(({ name }) => name)).toEqual(['Name', 'Ready', 'Age', 'Containers', 'Images'])
    expect(kind.columns.map((column) => column.cell(set, { nowMs: 0 }))).toEqual([
      'web',
      '2/1',
      '<unknown>',
      'main',
      'busybox',
    ])
  })
})

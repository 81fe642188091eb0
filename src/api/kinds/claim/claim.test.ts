import { describe, expect, it } from 'vitest'
import { cellOf } from '../../columns.ts'
import { type Draft, tryCreate, tryUpdate } from '../try-write.fixture.ts'
import { persistentVolumeClaimKind as kind } from './claim.ts'
import type { PersistentVolumeClaim } from './claim-schema.ts'

const aClaim = (spec: object = {}, metadata: object = {}) => ({
  metadata: { name: 'data', namespace: 'shop', ...metadata },
  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '10Gi' } }, ...spec },
})

const NOT_A_SUBDOMAIN =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and " +
  "end with an alphanumeric character (e.g. 'example.com', regex used for validation is " +
  "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"

describe('creating a claim', () => {
  it('applies defaults and ignores the status', () => {
    const { object, errors, warnings } = tryCreate(kind, { ...aClaim(), status: { phase: 'Bound' } })
    expect(errors).toEqual([])
    expect(warnings).toEqual([])
    expect(object.spec?.volumeMode).toBe('Filesystem')
    expect(object.status).toEqual({ phase: 'Pending' })
  })

  it.each([
    ['spec.accessModes: Required value: at least 1 access mode is required', { accessModes: [] }],
    [
      'spec.accessModes: Unsupported value: "RWO": supported values: "ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"',
      { accessModes: ['RWO'] },
    ],
    [
      'spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes',
      { accessModes: ['ReadWriteOncePod', 'ReadOnlyMany'] },
    ],
    ['spec.resources[storage]: Required value', { resources: {} }],
    [
      'spec.resources[storage]: Invalid value: "0": must be greater than zero',
      { resources: { requests: { storage: 0 } } },
    ],
    [
      'spec.resources[storage]: Invalid value: "-1Gi": must be greater than zero',
      { resources: { requests: { storage: '-1Gi' } } },
    ],
    [`spec.storageClassName: Invalid value: "Fast!": ${NOT_A_SUBDOMAIN}`, { storageClassName: 'Fast!' }],
    ['spec.volumeMode: Unsupported value: "Raw": supported values: "Block", "Filesystem"', { volumeMode: 'Raw' }],
    [
      'spec.selector.matchExpressions[0].operator: Invalid value: "Is": not a valid selector operator',
      { selector: { matchExpressions: [{ key: 'a', operator: 'Is' }] } },
    ],
    [
      `spec.volumeAttributesClassName: Invalid value: "Gold!": ${NOT_A_SUBDOMAIN}`,
      { volumeAttributesClassName: 'Gold!' },
    ],
  ])('rejects: %s', (message, spec) => {
    expect(tryCreate(kind, aClaim(spec)).errors).toEqual([message])
  })

  it.each([
    ['requests', 'storage', '9223372036854775808'],
    ['requests', 'storage', '1e400'],
    ['limits', 'storage', '100E'],
    ['requests', 'iops', '1e19'],
    ['requests', 'throughput', '10E'],
  ])('SYS-10 rejects %s of %s above the maximum: %s', (part, name, amount) => {
    const requests = { storage: '1Gi' }
    const resources = { requests, [part]: { ...(part === 'requests' ? requests : {}), [name]: amount } }
    const { errors } = tryCreate(kind, aClaim({ resources }))
    expect(errors).toEqual([
      expect.stringMatching(
        `^spec.resources.${part}.${name}: Invalid value: .*: must be at most 9223372036854775807 \\(about 8Ei\\)`,
      ),
    ])
  })

  it('SYS-10 accepts the maximum amount, and a larger one that is already stored', () => {
    const largest = aClaim({ resources: { requests: { storage: '9223372036854775807' } } })
    expect(tryCreate(kind, largest).errors).toEqual([])
    const storedClaim: Draft = aClaim({ resources: { requests: { storage: '100E' } }, volumeMode: 'Filesystem' })
    const relabel = (draft: Draft) => {
      draft.metadata.labels = { a: 'b' }
    }
    expect(tryUpdate(kind, storedClaim, relabel).errors).toEqual([])
  })

  it.each([[['ReadWriteOncePod']], [['ReadWriteOnce', 'ReadOnlyMany', 'ReadWriteMany']]])(
    'accepts the access modes %s',
    (accessModes) => {
      expect(tryCreate(kind, aClaim({ accessModes })).errors).toEqual([])
    },
  )

  it('PROV-2 distinguishes an unset class from an empty one and accepts both', () => {
    expect(tryCreate(kind, aClaim()).object.spec).not.toHaveProperty('storageClassName')
    const { object, errors } = tryCreate(kind, aClaim({ storageClassName: '' }))
    expect(object.spec?.storageClassName).toBe('')
    expect(errors).toEqual([])
  })

  it('VAC-2 accepts an attributes class and an empty attributes class', () => {
    for (const name of ['gold', '']) {
      const { object, errors } = tryCreate(kind, aClaim({ volumeAttributesClassName: name }))
      expect(errors).toEqual([])
      expect(object.spec?.volumeAttributesClassName).toBe(name)
    }
  })

  it('drops the attributes class with a warning while the feature gate is disabled', () => {
    const gates = 'VolumeAttributesClass=false'
    const { object, errors, warnings } = tryCreate(kind, aClaim({ volumeAttributesClassName: 'Gold!' }), { gates })
    expect(errors).toEqual([])
    expect(object.spec).not.toHaveProperty('volumeAttributesClassName')
    expect(warnings).toEqual([
      'spec.volumeAttributesClassName: "Gold!" was ignored, because the VolumeAttributesClass feature gate is disabled',
    ])
    const storedClaim = tryCreate(kind, aClaim({ volumeAttributesClassName: 'gold' })).object
    const keepClass = (draft: Draft) => Object.assign(draft.metadata, { labels: { a: 'b' } })
    expect(tryUpdate(kind, storedClaim, keepClass, { gates }).warnings).toEqual([])
  })

  it('drops iops and throughput with a warning while the feature gate is disabled', () => {
    const gates = 'VolumeProvisionedIO=false'
    const resources = { requests: { storage: '1Gi', iops: '500' }, limits: { throughput: '9Mi' } }
    const { object, warnings } = tryCreate(kind, aClaim({ resources }), { gates })
    expect(object.spec?.resources).toEqual({ requests: { storage: '1Gi' } })
    expect(warnings).toEqual([
      'spec.resources.requests[iops]: "500" was ignored, because the VolumeProvisionedIO feature gate is disabled',
      'spec.resources.limits[throughput]: "9Mi" was ignored, because the VolumeProvisionedIO feature gate is disabled',
    ])
    expect(tryCreate(kind, aClaim({ resources })).warnings).toEqual([])
  })

  it('accepts requests for unknown resources', () => {
    const { object, errors } = tryCreate(kind, aClaim({ resources: { requests: { storage: '1Gi', gpus: '2' } } }))
    expect(errors).toEqual([])
    expect(object.spec?.resources?.requests).toEqual({ storage: '1Gi', gpus: '2' })
  })

  it('rejects a claim without a spec', () => {
    expect(tryCreate(kind, { metadata: { name: 'data' } }).errors).toEqual([
      'spec.accessModes: Required value: at least 1 access mode is required',
      'spec.resources[storage]: Required value',
    ])
  })

  it('warns about fractions of a byte and the deprecated annotation', () => {
    const resources = { requests: { storage: '1.5' }, limits: { storage: '0.3' } }
    const annotations = { 'volume.beta.kubernetes.io/storage-class': 'fast' }
    expect(tryCreate(kind, aClaim({ resources }, { annotations })).warnings).toEqual([
      'metadata.annotations[volume.beta.kubernetes.io/storage-class]: deprecated since v1.8; use "storageClassName" attribute instead',
      'spec.resources.requests[storage]: fractional byte value "1500m" is invalid, must be an integer',
      'spec.resources.limits[storage]: fractional byte value "300m" is invalid, must be an integer',
    ])
  })
})

describe('the claim table', () => {
  const context = { nowMs: Date.parse('2026-01-01T01:00:00Z') }
  const cells = (claim: PersistentVolumeClaim) => kind.columns.map((column) => cellOf(column, claim, context))

  it('has the Kubernetes columns', () => {
    expect(kind.columns.map(({ name, wide }) => (wide ? `${name}*` : name))).toEqual([
      'Name',
      'Status',
      'Volume',
      'Capacity',
      'Access Modes',
      'StorageClass',
      'VolumeAttributesClass',
      'Age',
      'VolumeMode*',
    ])
  })

  it('has no capacity or access modes until the claim has a volume', () => {
    const { object } = tryCreate(kind, aClaim())
    expect(cells(object)).toEqual(['data', 'Pending', '', '', '', '', '<unset>', '<unknown>', 'Filesystem'])
  })

  it('shows a bound claim with abbreviated access modes, and the status Terminating while it is being deleted', () => {
    const claim: PersistentVolumeClaim = {
      metadata: { name: 'data', creationTimestamp: '2026-01-01T00:00:00Z' },
      spec: { volumeName: 'pv-1', storageClassName: 'fast', volumeAttributesClassName: 'gold', volumeMode: 'Block' },
      status: {
        phase: 'Bound',
        accessModes: ['ReadWriteOncePod', 'ReadOnlyMany', 'ReadWriteOnce', 'ReadWriteMany'],
        capacity: { storage: '20Gi' },
      },
    }
    expect(cells(claim)).toEqual(['data', 'Bound', 'pv-1', '20Gi', 'RWO,ROX,RWX,RWOP', 'fast', 'gold', '60m', 'Block'])
    const terminating = { ...claim, metadata: { ...claim.metadata, deletionTimestamp: '2026-01-01T00:30:00Z' } }
    expect(cells(terminating)[1]).toBe('Terminating')
  })

  it('PROV-2 shows the class from the beta annotation, the field or the alpha annotation, in this order', () => {
    const classOf = (annotations: Record<string, string>, storageClassName?: string) =>
      cells({ metadata: { name: 'data', annotations }, spec: { storageClassName } })[5]
    const beta = { 'volume.beta.kubernetes.io/storage-class': 'old' }
    const alpha = { 'volume.alpha.kubernetes.io/storage-class': 'older' }
    expect(classOf({ ...beta, ...alpha }, 'new')).toBe('old')
    expect(classOf(alpha, 'new')).toBe('new')
    expect(classOf(alpha)).toBe('older')
  })
})

describe('a claim', () => {
  it('supports the field selector "name"', () => {
    expect(kind.selectableFields?.name?.({ metadata: { name: 'data' } })).toBe('data')
  })
})

import { describe, expect, it } from 'vitest'
import { cellOf } from '../../columns.ts'
import { type Draft, tryCreate, tryUpdate } from '../try-write.fixture.ts'
import { csiDriverKind as kind } from './csi-driver.ts'

const aDriver = (spec: object = {}) => ({ metadata: { name: 'csi.example.com' }, spec })
const storedDriver = tryCreate(kind, aDriver()).object

describe('a CSI driver', () => {
  it('CAP-2 defaults storageCapacity to false and has the other defaults of Kubernetes', () => {
    const { object, errors } = tryCreate(kind, aDriver())
    expect(errors).toEqual([])
    expect(object.spec).toEqual({
      attachRequired: true,
      podInfoOnMount: false,
      storageCapacity: false,
      fsGroupPolicy: 'ReadWriteOnceWithFSType',
      volumeLifecycleModes: ['Persistent'],
      requiresRepublish: false,
      seLinuxMount: false,
      preventPodSchedulingIfMissing: false,
    })
  })

  it('does not share its defaults with other drivers', () => {
    const otherDriver = tryCreate(kind, aDriver()).object
    otherDriver.spec.volumeLifecycleModes!.push('Ephemeral')
    expect(storedDriver.spec.volumeLifecycleModes).toEqual(['Persistent'])
  })

  it('CAP-2 allows changes to storageCapacity', () => {
    const enabled = tryUpdate(kind, storedDriver, (draft) => (draft.spec.storageCapacity = true))
    expect(enabled.errors).toEqual([])
    expect(tryUpdate(kind, enabled.object, (draft) => (draft.spec.storageCapacity = false)).errors).toEqual([])
  })

  it.each<[string, object]>([
    [
      'spec.fsGroupPolicy: Unsupported value: "Some": supported values: "File", "None", "ReadWriteOnceWithFSType"',
      { fsGroupPolicy: 'Some' },
    ],
    [
      'spec.volumeLifecycleModes: Unsupported value: "Eternal": supported values: "Persistent", "Ephemeral"',
      { volumeLifecycleModes: ['Eternal'] },
    ],
    [
      'spec.tokenRequests[1].audience: Duplicate value: "a"',
      { tokenRequests: [{ audience: 'a' }, { audience: 'a', expirationSeconds: 1 }] },
    ],
    [
      'spec.tokenRequests[0].expirationSeconds: Invalid value: 599: may not specify a duration less than 10 minutes',
      { tokenRequests: [{ audience: '', expirationSeconds: 599 }] },
    ],
    [
      'spec.tokenRequests[0].expirationSeconds: Invalid value: 4294967297: may not specify a duration larger than 2^32 seconds',
      { tokenRequests: [{ audience: '', expirationSeconds: 2 ** 32 + 1 }] },
    ],
    [
      'spec.nodeAllocatableUpdatePeriodSeconds: Invalid value: 9: must be greater than or equal to 10 seconds',
      { nodeAllocatableUpdatePeriodSeconds: 9 },
    ],
    [
      'spec.serviceAccountTokenInSecrets: Invalid value: true: serviceAccountTokenInSecrets is set but no tokenRequests are specified',
      { serviceAccountTokenInSecrets: true },
    ],
  ])('is rejected: %s', (message, spec) => {
    expect(tryCreate(kind, aDriver(spec)).errors).toEqual([message])
  })

  it.each<[string, (spec: Draft) => void]>([
    // attachedRequired: as Kubernetes spells it in this message
    ['spec.attachedRequired: Invalid value: false: field is immutable', (spec) => (spec.attachRequired = false)],
    [
      'spec.volumeLifecycleModes: Invalid value: ["Ephemeral"]: field is immutable',
      (spec) => (spec.volumeLifecycleModes = ['Ephemeral']),
    ],
  ])('has immutable fields: %s', (message, change) => {
    expect(tryUpdate(kind, storedDriver, (draft) => change(draft.spec)).errors).toEqual([message])
  })

  it('causes a warning about tokens in volume attributes if its token requests change without serviceAccountTokenInSecrets', () => {
    const warning =
      'spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible logging of tokens in volume attributes'
    const createResult = tryCreate(kind, aDriver({ tokenRequests: [{ audience: 'vault' }] }))
    expect(createResult.warnings).toEqual([warning])
    expect(tryUpdate(kind, createResult.object, (draft) => (draft.spec.podInfoOnMount = true)).warnings).toEqual([])
    expect(
      tryUpdate(kind, createResult.object, (draft) => draft.spec.tokenRequests.push({ audience: 'b' })).warnings,
    ).toEqual([warning])
    expect(
      tryUpdate(kind, createResult.object, (draft) => (draft.spec.serviceAccountTokenInSecrets = true)).warnings,
    ).toEqual([])
  })

  it('has a generation and requires a resourceVersion for updates', () => {
    expect(kind.generationOf?.(storedDriver)).toBe(storedDriver.spec)
    expect(kind.allowsUnconditionalUpdate).toBe(false)
  })

  it('has a table row with its capabilities', () => {
    expect(kind.columns.map(({ name }) => name)).toEqual([
      'Name',
      'AttachRequired',
      'PodInfoOnMount',
      'StorageCapacity',
      'TokenRequests',
      'RequiresRepublish',
      'Modes',
      'Age',
    ])
    const cells = (spec: object) =>
      kind.columns.map((column) => cellOf(column, { metadata: { name: 'd' }, spec }, { nowMs: 0 }))
    expect(cells({})).toEqual(['d', true, false, false, '<unset>', false, '<none>', '<unknown>'])
    expect(
      cells({
        tokenRequests: [{ audience: 'a' }, { audience: 'b' }],
        volumeLifecycleModes: ['Persistent', 'Ephemeral'],
      }).slice(4, 7),
    ).toEqual(['a,b', false, 'Persistent,Ephemeral'])
  })
})

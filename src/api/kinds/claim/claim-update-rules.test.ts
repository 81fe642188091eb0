import { describe, expect, it } from 'vitest'
import { type Draft, tryCreate, tryUpdate } from '../try-write.fixture.ts'
import { persistentVolumeClaimKind as kind } from './claim.ts'
import type { PersistentVolumeClaim, PersistentVolumeClaimStatus } from './claim-schema.ts'

const IMMUTABLE =
  'spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims'
const RECOVERY_DISABLED = 'RecoverExpansionFailure=false'
const CLASSES_DISABLED = 'VolumeAttributesClass=false'

interface ClaimOptions {
  request?: string
  capacity?: string
  isBound?: boolean
  attributesClass?: string
  currentAttributesClass?: string
  status?: PersistentVolumeClaimStatus
  annotations?: Record<string, string>
  storageClassName?: string
  gates?: string
}

/** Creates a stored claim, which is bound by default. */
function aClaim({
  request = '20Gi',
  capacity = '10Gi',
  isBound = true,
  attributesClass,
  currentAttributesClass,
  ...options
}: ClaimOptions = {}) {
  const { object } = tryCreate(
    kind,
    {
      metadata: { name: 'data', namespace: 'shop', annotations: options.annotations },
      spec: {
        accessModes: ['ReadWriteOnce'],
        resources: { requests: { storage: request } },
        volumeAttributesClassName: attributesClass,
        storageClassName: options.storageClassName,
      },
    },
    { gates: options.gates },
  )
  if (!isBound) return object
  object.spec!.volumeName = 'pv-1'
  object.status = {
    phase: 'Bound',
    capacity: { storage: capacity },
    currentVolumeAttributesClassName: currentAttributesClass,
    ...options.status,
  }
  return object
}

const resize = (claim: PersistentVolumeClaim, size: string, gates?: string) =>
  tryUpdate(kind, claim, (draft) => (draft.spec.resources.requests.storage = size), { gates }).errors

const setClass = (claim: PersistentVolumeClaim, name: string | undefined, gates?: string) =>
  tryUpdate(kind, claim, (draft) => (draft.spec.volumeAttributesClassName = name), { gates })

describe("a claim's size", () => {
  it('can be changed to another notation of the same amount', () => {
    expect(resize(aClaim({ request: '20Gi', isBound: false }), '20480Mi')).toEqual([])
  })

  it('is immutable before the claim is bound, with an error that contains the change', () => {
    expect(resize(aClaim({ isBound: false }), '30Gi')).toEqual([
      `${IMMUTABLE}\n  resources.requests.storage: "20Gi" -> "30Gi"`,
    ])
  })

  it('can be raised while the claim is bound', () => {
    expect(resize(aClaim(), '30Gi')).toEqual([])
  })

  it.each([
    ['a size above the capacity', '15Gi'],
    ['the capacity', '10Gi'],
  ])('REX-2 can be lowered to %s of the volume', (_case, size) => {
    expect(resize(aClaim({ request: '20Gi', capacity: '10Gi' }), size)).toEqual([])
  })

  it("REX-2 cannot be lowered below the volume's capacity", () => {
    expect(resize(aClaim({ request: '20Gi', capacity: '10Gi' }), '9Gi')).toEqual([
      'spec.resources.requests.storage: Forbidden: field can not be less than status.capacity',
    ])
  })

  it('REX-10 cannot be lowered while the feature gate is disabled', () => {
    expect(resize(aClaim({ gates: RECOVERY_DISABLED }), '15Gi', RECOVERY_DISABLED)).toEqual([
      'spec.resources.requests.storage: Forbidden: field can not be less than previous value',
    ])
  })

  it.each<[string, PersistentVolumeClaim]>([
    ['a high-water mark', aClaim()],
    ['allocated resources', aClaim({ gates: RECOVERY_DISABLED, status: { allocatedResources: { storage: '20Gi' } } })],
    [
      'a resize status',
      aClaim({
        gates: RECOVERY_DISABLED,
        status: { allocatedResourceStatuses: { storage: 'ControllerResizeInProgress' } },
      }),
    ],
  ])('REX-10 can still be lowered while the feature gate is disabled if the claim has %s', (_case, claim) => {
    claim.status = { ...claim.status, phase: 'Bound', capacity: { storage: '10Gi' } }
    expect(resize(claim, '10Gi', RECOVERY_DISABLED)).toEqual([])
    expect(resize(claim, '9Gi', RECOVERY_DISABLED)).toEqual([
      'spec.resources.requests.storage: Forbidden: field can not be less than status.capacity',
    ])
  })
})

describe('the size of a claim with only iops in allocatedResources', () => {
  it('REX-10 cannot be lowered while the feature gate is disabled, because iops has a separate gate', () => {
    const claim = aClaim({ gates: RECOVERY_DISABLED, status: { allocatedResources: { iops: '100' } } })
    claim.status = { ...claim.status, phase: 'Bound', capacity: { storage: '10Gi' } }
    expect(resize(claim, '15Gi', RECOVERY_DISABLED)).toEqual([
      'spec.resources.requests.storage: Forbidden: field can not be less than previous value',
    ])
  })
})

describe('the attributes class of a claim', () => {
  it.each([
    ['none to a class', undefined, 'gold', undefined],
    ['empty to a class', '', 'gold', undefined],
    ['one class to another', 'silver', 'gold', 'silver'],
    ['a class to none if there is no current class', 'gold', undefined, undefined],
    ['a class to empty if there is no current class', 'gold', '', undefined],
  ])('VAC-2 can change from %s on a bound claim', (_case, attributesClass, next, currentAttributesClass) => {
    const { object, errors } = setClass(aClaim({ attributesClass, currentAttributesClass }), next)
    expect(errors).toEqual([])
    expect(object.spec?.volumeAttributesClassName).toBe(next)
  })

  it.each([
    ['nil', undefined],
    ['empty string', ''],
  ])('VAC-2 cannot change to %s if there is a current class', (description, next) => {
    expect(setClass(aClaim({ attributesClass: 'gold', currentAttributesClass: 'gold' }), next).errors).toEqual([
      `spec.volumeAttributesClassName: Forbidden: update to ${description} is forbidden when status.currentVolumeAttributesClassName is not nil`,
    ])
  })

  it('VAC-2 is immutable before the claim is bound', () => {
    expect(setClass(aClaim({ isBound: false, attributesClass: 'gold' }), 'silver').errors).toEqual([
      `${IMMUTABLE}\n  volumeAttributesClassName: "gold" -> "silver"`,
    ])
  })

  it.each([
    ['another class', 'silver'],
    ['none', undefined],
  ])('VAC-12 cannot change to %s while the feature gate is disabled', (_case, next) => {
    expect(setClass(aClaim({ attributesClass: 'gold' }), next, CLASSES_DISABLED).errors).toEqual([
      'spec.volumeAttributesClassName: Forbidden: update is forbidden when the VolumeAttributesClass feature gate is disabled',
    ])
  })

  it('is dropped from an update without an error while the feature gate is disabled, if the stored claim has no class', () => {
    const { object, errors } = setClass(aClaim(), 'gold', CLASSES_DISABLED)
    expect(errors).toEqual([])
    expect(object.spec?.volumeAttributesClassName).toBeUndefined()
  })

  it('VAC-12 is kept by other updates while the feature gate is disabled', () => {
    const claim = aClaim({ attributesClass: 'gold', currentAttributesClass: 'gold' })
    const { object, errors } = tryUpdate(kind, claim, (draft) => (draft.metadata.labels = { a: 'b' }), {
      gates: CLASSES_DISABLED,
    })
    expect(errors).toEqual([])
    expect(object.spec?.volumeAttributesClassName).toBe('gold')
  })
})

describe('immutable fields of a claim', () => {
  it.each<[string, string, (spec: Draft) => void]>([
    [
      'access modes',
      '  accessModes: ["ReadWriteOnce"] -> ["ReadWriteMany"]',
      (spec) => (spec.accessModes = ['ReadWriteMany']),
    ],
    [
      'the selector',
      '  selector: (none) -> {"matchLabels":{"a":"b"}}',
      (spec) => (spec.selector = { matchLabels: { a: 'b' } }),
    ],
    ['the volume', '  volumeName: "pv-1" -> "pv-2"', (spec) => (spec.volumeName = 'pv-2')],
    [
      'limits for storage',
      '  resources.limits.storage: (none) -> "1Ti"',
      (spec) => (spec.resources.limits = { storage: '1Ti' }),
    ],
    ['unknown resources', '  resources.requests.gpus: (none) -> "1"', (spec) => (spec.resources.requests.gpus = 1)],
  ])('include %s of a bound claim', (_case, line, change) => {
    const { errors } = tryUpdate(kind, aClaim(), (draft) => change(draft.spec))
    expect(errors).toEqual([`${IMMUTABLE}\n${line}`])
  })

  it('include volumeMode, which has an additional error', () => {
    const { errors } = tryUpdate(kind, aClaim(), (draft) => (draft.spec.volumeMode = 'Block'))
    expect(errors).toEqual([
      `${IMMUTABLE}\n  volumeMode: "Filesystem" -> "Block"`,
      'volumeMode: Invalid value: "Block": field is immutable',
    ])
  })

  it('do not include volumeName if it is unset', () => {
    expect(tryUpdate(kind, aClaim({ isBound: false }), (draft) => (draft.spec.volumeName = 'pv-1')).errors).toEqual([])
  })

  it('are listed in one error', () => {
    const { errors } = tryUpdate(kind, aClaim({ isBound: false }), (draft) => {
      draft.spec.accessModes.push('ReadOnlyMany')
      draft.spec.resources.requests.storage = '1Ti'
    })
    expect(errors).toEqual([
      `${IMMUTABLE}\n  accessModes: ["ReadWriteOnce"] -> ["ReadWriteOnce","ReadOnlyMany"]\n  resources.requests.storage: "20Gi" -> "1Ti"`,
    ])
  })
})

describe('the storage class of a claim', () => {
  const BETA = 'volume.beta.kubernetes.io/storage-class'
  const ALPHA = 'volume.alpha.kubernetes.io/storage-class'
  const setStorageClass = (claim: PersistentVolumeClaim, name: string | undefined) =>
    tryUpdate(kind, claim, (draft) => (draft.spec.storageClassName = name)).errors

  it('PROV-2 can be set if it is unset, whether the claim is bound or not', () => {
    expect(setStorageClass(aClaim({ isBound: false }), 'fast')).toEqual([])
    expect(setStorageClass(aClaim(), 'fast')).toEqual([])
  })

  it.each([
    ['to another class', 'fast', 'slow'],
    ['to no class', 'fast', undefined],
    ['from the empty class', '', 'fast'],
  ])('PROV-2 cannot change %s', (_case, oldName, newName) => {
    expect(setStorageClass(aClaim({ storageClassName: oldName }), newName)[0]).toMatch(IMMUTABLE)
  })

  for (const annotation of [BETA, ALPHA]) {
    it(`PROV-2 can move from ${annotation} to the field`, () => {
      const { errors } = tryUpdate(kind, aClaim({ annotations: { [annotation]: 'fast' } }), (draft) => {
        draft.spec.storageClassName = 'fast'
        delete draft.metadata.annotations
      })
      expect(errors).toEqual([])
    })

    it(`PROV-2 cannot be changed through ${annotation}`, () => {
      const claim = aClaim({ annotations: { [annotation]: 'fast' } })
      const { errors } = tryUpdate(kind, claim, (draft) => (draft.metadata.annotations[annotation] = 'slow'))
      expect(errors).toEqual([`metadata.annotations.${annotation}: Invalid value: "slow": field is immutable`])
      expect(setStorageClass(claim, 'slow')[0]).toMatch(IMMUTABLE)
    })
  }
})

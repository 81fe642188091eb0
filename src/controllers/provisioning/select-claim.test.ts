import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import type { StorageClass } from '../../api/kinds/storage-class/storage-class-schema.ts'
import { PROVISIONER, PROVISIONER_BETA, SELECTED_NODE, SELECTED_NODE_ALPHA } from '../../volumes/names.ts'
import { selectClaim, selectedNodeOf } from './select-claim.ts'

const PROVISIONER_NAME = 'disks.example.com'
const aClaim = (annotations: Record<string, string>, spec: object = {}): PersistentVolumeClaim => ({
  metadata: { namespace: 'shop', name: 'data', uid: 'u1', annotations },
  spec: { storageClassName: 'fast', ...spec },
})
const aClass = (overrides: Partial<StorageClass> = {}): StorageClass => ({
  metadata: { name: 'fast' },
  provisioner: PROVISIONER_NAME,
  volumeBindingMode: 'Immediate',
  ...overrides,
})
const DELAYED_CLASS = aClass({ volumeBindingMode: 'WaitForFirstConsumer' })

describe('selectClaim', () => {
  it.each([
    ['PROV-9 the annotation names us', aClaim({ [PROVISIONER]: PROVISIONER_NAME }), aClass(), 'selected'],
    ['PROV-9 the older annotation names us', aClaim({ [PROVISIONER_BETA]: PROVISIONER_NAME }), aClass(), 'selected'],
    [
      'PROV-9 the newer annotation wins',
      aClaim({ [PROVISIONER]: 'other.io', [PROVISIONER_BETA]: PROVISIONER_NAME }),
      aClass(),
      'notOurs',
    ],
    ['PROV-9 no annotation', aClaim({}), aClass(), 'notOurs'],
    [
      'PROV-9 a volume is named already',
      aClaim({ [PROVISIONER]: PROVISIONER_NAME }, { volumeName: 'pv' }),
      aClass(),
      'notOurs',
    ],
    ['PROV-9 the class is missing', aClaim({ [PROVISIONER]: PROVISIONER_NAME }), undefined, 'impossible'],
    [
      'PROV-9 the class is another’s',
      aClaim({ [PROVISIONER]: PROVISIONER_NAME }),
      aClass({ provisioner: 'other.io' }),
      'notOurs',
    ],
    ['PROV-9 the class waits for a pod', aClaim({ [PROVISIONER]: PROVISIONER_NAME }), DELAYED_CLASS, 'waiting'],
    [
      'PROV-9 the class waits, and an empty node is none',
      aClaim({ [PROVISIONER]: PROVISIONER_NAME, [SELECTED_NODE]: '' }),
      DELAYED_CLASS,
      'waiting',
    ],
    [
      'PROV-9 the class waits, and the node annotation of old does not count',
      aClaim({ [PROVISIONER]: PROVISIONER_NAME, [SELECTED_NODE_ALPHA]: 'n' }),
      DELAYED_CLASS,
      'waiting',
    ],
    [
      'PROV-9 the class waits, and a node is chosen',
      aClaim({ [PROVISIONER]: PROVISIONER_NAME, [SELECTED_NODE]: 'n' }),
      DELAYED_CLASS,
      'selected',
    ],
  ] as const)('%s', (_what, claim, storageClass, expected) => {
    expect(selectClaim(claim, storageClass, PROVISIONER_NAME).is).toBe(expected)
  })

  it('PROV-9 never selects a claim of another provisioner or with a volume', () => {
    const name = fc.constantFrom(PROVISIONER_NAME, 'other.io', '')
    fc.assert(
      fc.property(
        fc.record({ ga: fc.option(name, { nil: undefined }), beta: fc.option(name, { nil: undefined }) }),
        fc.constantFrom('', 'pv'),
        fc.constantFrom(aClass(), DELAYED_CLASS, aClass({ provisioner: 'other.io' }), undefined),
        ({ ga, beta }, volumeName, storageClass) => {
          const annotations = {
            ...(ga === undefined ? {} : { [PROVISIONER]: ga }),
            ...(beta === undefined ? {} : { [PROVISIONER_BETA]: beta }),
          }
          const { is } = selectClaim(aClaim(annotations, { volumeName }), storageClass, PROVISIONER_NAME)
          if ((ga ?? beta) !== PROVISIONER_NAME || volumeName) expect(is).toBe('notOurs')
          if (is === 'selected') expect(storageClass?.provisioner).toBe(PROVISIONER_NAME)
        },
      ),
    )
  })

  it('PROV-9 reads the alpha annotation for the node if the other is absent', () => {
    expect(selectedNodeOf(aClaim({ [SELECTED_NODE_ALPHA]: 'old' }))).toBe('old')
    expect(selectedNodeOf(aClaim({ [SELECTED_NODE]: 'new', [SELECTED_NODE_ALPHA]: 'old' }))).toBe('new')
    expect(selectedNodeOf(aClaim({}))).toBeUndefined()
  })

  it('PROV-9 names the fix for a claim without a class', () => {
    const claim = aClaim({ [PROVISIONER]: PROVISIONER_NAME }, { storageClassName: undefined })
    expect(selectClaim(claim, undefined, PROVISIONER_NAME)).toMatchObject({
      because: expect.stringContaining('names no storage class'),
    })
  })
})

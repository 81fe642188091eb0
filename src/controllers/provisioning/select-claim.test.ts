import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { PersistentVolumeClaim } from '../../api/kinds/claim/claim-schema.ts'
import type { StorageClass } from '../../api/kinds/storage-class/storage-class-schema.ts'
import { PROVISIONER, PROVISIONER_BETA, SELECTED_NODE, SELECTED_NODE_ALPHA } from '../../volumes/names.ts'
import { selectClaim, selectedNodeOf } from './select-claim.ts'

const OURS = 'disks.example.com'
const aClaim = (annotations: Record<string, string>, spec: object = {}): PersistentVolumeClaim => ({
  metadata: { namespace: 'shop', name: 'data', uid: 'u1', annotations },
  spec: { storageClassName: 'fast', ...spec },
})
const aClass = (more: Partial<StorageClass> = {}): StorageClass => ({
  metadata: { name: 'fast' },
  provisioner: OURS,
  volumeBindingMode: 'Immediate',
  ...more,
})
const delayed = aClass({ volumeBindingMode: 'WaitForFirstConsumer' })

describe('selectClaim', () => {
  it.each([
    ['PROV-9 the annotation names us', aClaim({ [PROVISIONER]: OURS }), aClass(), 'selected'],
    ['PROV-9 the older annotation names us', aClaim({ [PROVISIONER_BETA]: OURS }), aClass(), 'selected'],
    [
      'PROV-9 the newer annotation wins',
      aClaim({ [PROVISIONER]: 'other.io', [PROVISIONER_BETA]: OURS }),
      aClass(),
      'notOurs',
    ],
    ['PROV-9 no annotation', aClaim({}), aClass(), 'notOurs'],
    ['PROV-9 a volume is named already', aClaim({ [PROVISIONER]: OURS }, { volumeName: 'pv' }), aClass(), 'notOurs'],
    ['PROV-9 the class is missing', aClaim({ [PROVISIONER]: OURS }), undefined, 'impossible'],
    ['PROV-9 the class is another’s', aClaim({ [PROVISIONER]: OURS }), aClass({ provisioner: 'other.io' }), 'notOurs'],
    ['PROV-9 the class waits for a pod', aClaim({ [PROVISIONER]: OURS }), delayed, 'waiting'],
    [
      'PROV-9 the class waits, and an empty node is none',
      aClaim({ [PROVISIONER]: OURS, [SELECTED_NODE]: '' }),
      delayed,
      'waiting',
    ],
    [
      'PROV-9 the class waits, and the node annotation of old does not count',
      aClaim({ [PROVISIONER]: OURS, [SELECTED_NODE_ALPHA]: 'n' }),
      delayed,
      'waiting',
    ],
    [
      'PROV-9 the class waits, and a node is chosen',
      aClaim({ [PROVISIONER]: OURS, [SELECTED_NODE]: 'n' }),
      delayed,
      'selected',
    ],
  ] as const)('%s', (_what, claim, storageClass, is) => {
    expect(selectClaim(claim, storageClass, OURS).is).toBe(is)
  })

  it('PROV-9 never selects a claim of another provisioner or with a volume', () => {
    const name = fc.constantFrom(OURS, 'other.io', '')
    fc.assert(
      fc.property(
        fc.record({ ga: fc.option(name, { nil: undefined }), beta: fc.option(name, { nil: undefined }) }),
        fc.constantFrom('', 'pv'),
        fc.constantFrom(aClass(), delayed, aClass({ provisioner: 'other.io' }), undefined),
        ({ ga, beta }, volumeName, storageClass) => {
          const annotations = {
            ...(ga === undefined ? {} : { [PROVISIONER]: ga }),
            ...(beta === undefined ? {} : { [PROVISIONER_BETA]: beta }),
          }
          const { is } = selectClaim(aClaim(annotations, { volumeName }), storageClass, OURS)
          if ((ga ?? beta) !== OURS || volumeName) expect(is).toBe('notOurs')
          if (is === 'selected') expect(storageClass?.provisioner).toBe(OURS)
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
    const claim = aClaim({ [PROVISIONER]: OURS }, { storageClassName: undefined })
    expect(selectClaim(claim, undefined, OURS)).toMatchObject({
      because: expect.stringContaining('names no storage class'),
    })
  })
})

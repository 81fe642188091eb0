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
    [
      'PROV-9 selects a claim whose annotation names the provisioner',
      aClaim({ [PROVISIONER]: PROVISIONER_NAME }),
      aClass(),
      'selected',
    ],
    [
      'PROV-9 selects a claim whose beta annotation names the provisioner',
      aClaim({ [PROVISIONER_BETA]: PROVISIONER_NAME }),
      aClass(),
      'selected',
    ],
    [
      'PROV-9 prefers the annotation to the beta annotation',
      aClaim({ [PROVISIONER]: 'other.io', [PROVISIONER_BETA]: PROVISIONER_NAME }),
      aClass(),
      'notAssigned',
    ],
    ['PROV-9 ignores a claim without an annotation', aClaim({}), aClass(), 'notAssigned'],
    [
      'PROV-9 ignores a claim with a volume',
      aClaim({ [PROVISIONER]: PROVISIONER_NAME }, { volumeName: 'pv' }),
      aClass(),
      'notAssigned',
    ],
    ['PROV-9 reports a missing class', aClaim({ [PROVISIONER]: PROVISIONER_NAME }), undefined, 'impossible'],
    [
      'PROV-9 ignores a claim whose class names another provisioner',
      aClaim({ [PROVISIONER]: PROVISIONER_NAME }),
      aClass({ provisioner: 'other.io' }),
      'notAssigned',
    ],
    [
      'PROV-9 waits for a node if the class is WaitForFirstConsumer',
      aClaim({ [PROVISIONER]: PROVISIONER_NAME }),
      DELAYED_CLASS,
      'waiting',
    ],
    [
      'PROV-9 waits for a node if the annotation of the node is empty',
      aClaim({ [PROVISIONER]: PROVISIONER_NAME, [SELECTED_NODE]: '' }),
      DELAYED_CLASS,
      'waiting',
    ],
    [
      'PROV-9 waits for a node if only the alpha annotation is set',
      aClaim({ [PROVISIONER]: PROVISIONER_NAME, [SELECTED_NODE_ALPHA]: 'n' }),
      DELAYED_CLASS,
      'waiting',
    ],
    [
      'PROV-9 selects a claim of a WaitForFirstConsumer class with a selected node',
      aClaim({ [PROVISIONER]: PROVISIONER_NAME, [SELECTED_NODE]: 'n' }),
      DELAYED_CLASS,
      'selected',
    ],
  ] as const)('%s', (_title, claim, storageClass, expected) => {
    expect(selectClaim(claim, storageClass, PROVISIONER_NAME).is).toBe(expected)
  })

  it('PROV-9 never selects a claim that belongs to another provisioner or has a volume', () => {
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
          if ((ga ?? beta) !== PROVISIONER_NAME || volumeName) expect(is).toBe('notAssigned')
          if (is === 'selected') expect(storageClass?.provisioner).toBe(PROVISIONER_NAME)
        },
      ),
    )
  })

  it('reads the node from the alpha annotation if the other annotation is absent', () => {
    expect(selectedNodeOf(aClaim({ [SELECTED_NODE_ALPHA]: 'old' }))).toBe('old')
    expect(selectedNodeOf(aClaim({ [SELECTED_NODE]: 'new', [SELECTED_NODE_ALPHA]: 'old' }))).toBe('new')
    expect(selectedNodeOf(aClaim({}))).toBeUndefined()
  })

  it('returns a message with a remedy for a claim without a class', () => {
    const claim = aClaim({ [PROVISIONER]: PROVISIONER_NAME }, { storageClassName: undefined })
    expect(selectClaim(claim, undefined, PROVISIONER_NAME)).toMatchObject({
      message: expect.stringContaining('names no storage class'),
    })
  })
})

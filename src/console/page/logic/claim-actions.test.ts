import { expect, it } from 'vitest'
import type { ClassRow } from '../rows/storage.ts'
import { aClaimRow } from './claim.fixture.ts'
import { attributesWrite, CLAIM_ACTIONS, deleteWrite, explainRefusal, sizeWrite } from './claim-actions.ts'

const storageClass: ClassRow = {
  uid: 'c',
  name: 'fast',
  createdMs: 0,
  deletedMs: undefined,
  driver: 'csi.example.com',
  isDefault: false,
  allowsExpansion: true,
  reclaimPolicy: 'Delete',
  waitsForConsumer: false,
}
const gold = { uid: 'v', name: 'gold', createdMs: 0, deletedMs: undefined, driver: 'csi.example.com', parameters: {} }
const context = {
  claim: aClaimRow('data'),
  storageClass,
  attributesClasses: [gold],
  mayPatch: true,
  mayDelete: true,
  isReady: true,
}

it('SYS-13 allows a viewer no action, and names the missing permission', () => {
  for (const action of CLAIM_ACTIONS) {
    const reason = explainRefusal(action, { ...context, mayPatch: false, mayDelete: false })
    expect(reason).toMatch(/permission to (patch|delete) persistentvolumeclaims in namespace shop/)
  }
})

it('allows no action before the permissions are known', () => {
  for (const action of CLAIM_ACTIONS)
    expect(explainRefusal(action, { ...context, mayPatch: undefined, mayDelete: undefined })).toBeDefined()
})

it('expands only a bound claim of a class that allows it', () => {
  expect(explainRefusal('expand', context)).toBeUndefined()
  expect(explainRefusal('expand', { ...context, claim: aClaimRow('data', { phase: 'Pending' }) })).toContain('Pending')
  expect(explainRefusal('expand', { ...context, storageClass: { ...storageClass, allowsExpansion: false } })).toContain(
    'does not allow',
  )
  expect(explainRefusal('expand', { ...context, storageClass: undefined })).toContain('does not exist or cannot')
  const withoutClass = { ...context, claim: aClaimRow('data', { className: undefined }), storageClass: undefined }
  expect(explainRefusal('expand', withoutClass)).toContain('has no class')
  expect(explainRefusal('expand', { ...context, claim: aClaimRow('data', { deletedMs: 1 }) })).toContain(
    'being deleted',
  )
})

it('changes attributes only if the driver has another attributes class', () => {
  expect(explainRefusal('attributes', context)).toBeUndefined()
  expect(explainRefusal('attributes', { ...context, claim: aClaimRow('data', { attributesClass: 'gold' }) })).toContain(
    'no other',
  )
})

it('cancels only an unfinished expansion, and retries only a claim that is not ready', () => {
  expect(explainRefusal('cancel', context)).toContain('has the size')
  expect(
    explainRefusal('cancel', { ...context, claim: aClaimRow('data', { requestBytes: 20 * 1024 ** 3 }) }),
  ).toBeUndefined()
  expect(explainRefusal('retry', context)).toContain('nothing to retry')
  expect(explainRefusal('retry', { ...context, isReady: false })).toBeUndefined()
})

it('SYS-13 returns the request of each write and the equivalent kubectl command', () => {
  expect(sizeWrite(context.claim, '20Gi')).toEqual({
    method: 'PATCH',
    path: '/k8s/api/v1/namespaces/shop/persistentvolumeclaims/data',
    body: { spec: { resources: { requests: { storage: '20Gi' } } } },
    command: `kubectl patch pvc data -n shop --type merge -p '{"spec":{"resources":{"requests":{"storage":"20Gi"}}}}'`,
  })
  expect(attributesWrite(context.claim, 'gold')).toMatchObject({
    body: { spec: { volumeAttributesClassName: 'gold' } },
    command: `kubectl patch pvc data -n shop --type merge -p '{"spec":{"volumeAttributesClassName":"gold"}}'`,
  })
  expect(deleteWrite(context.claim)).toMatchObject({
    method: 'DELETE',
    body: { preconditions: { uid: 'uid-data' } },
    command: 'kubectl delete pvc data -n shop',
  })
})

import { expect, it } from 'vitest'
import type { Kind } from '../api/kind.ts'
import { podKind } from '../api/kinds/pod/pod.ts'
import { RETRY_ANNOTATION } from '../runtime/operations/retry-request.ts'
import { PRUNED_CACHES } from './pruned-fields.ts'

it('PLUS-5 a pruned cache keeps only the retry annotation of a pod', () => {
  const reduce = PRUNED_CACHES.get(podKind as Kind)!
  const aPod = (annotations: Record<string, string>) => ({
    metadata: { name: 'a', namespace: 'default', uid: 'u', resourceVersion: '1', creationTimestamp: 'x', annotations },
  })
  const request = { [RETRY_ANNOTATION]: '2026-01-01T00:00:00Z' }
  expect(reduce(aPod({ ...request, note: 'long' }) as never).metadata.annotations).toEqual(request)
  expect(reduce(aPod({ note: 'long' }) as never).metadata.annotations).toBeUndefined()
})

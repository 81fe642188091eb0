import { describe, expect, it } from 'vitest'
import { configMapKind } from '../../api/kinds/config-map/config-map.ts'
import { ALL_KINDS } from '../../api/kinds/index.ts'
import { namespaceKind } from '../../api/kinds/namespace/namespace.ts'
import { podKind } from '../../api/kinds/pod/pod.ts'
import { findSubresource, subresourcesOf, verbsOf } from './subresources.ts'

describe('subresources', () => {
  it('include status for kinds that have a status', () => {
    expect(findSubresource(podKind, 'status')?.verbs).toEqual(['get', 'patch', 'update'])
    expect(findSubresource(configMapKind, 'status')).toBeUndefined()
  })

  it('are sorted by name', () => {
    for (const kind of [podKind, namespaceKind]) {
      const names = subresourcesOf(kind).map(({ name }) => name)
      expect(names).toEqual([...names].sort())
    }
  })

  it('depend on the group of the kind', () => {
    expect(findSubresource({ ...podKind, group: 'metrics.k8s.io' }, 'binding')).toBeUndefined()
  })
})

describe('verbsOf', () => {
  it('returns only create for reviews', () => {
    const reviews = ALL_KINDS.filter((kind) => kind.isReview)
    expect(reviews.map(({ kind }) => kind)).toContain('TokenReview')
    for (const kind of reviews) expect(verbsOf(kind), kind.kind).toEqual(['create'])
  })
})

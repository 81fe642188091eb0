import { describe, expect, it } from 'vitest'
import { configMapKind } from '../../api/kinds/config-map/config-map.ts'
import { ALL_KINDS } from '../../api/kinds/index.ts'
import { namespaceKind } from '../../api/kinds/namespace/namespace.ts'
import { podKind } from '../../api/kinds/pod/pod.ts'
import { findSubresource, subresourcesOf, verbsOf } from './subresources.ts'

describe('subresources', () => {
  it('include status for kinds that have one', () => {
    expect(findSubresource(podKind, 'status')?.verbs).toEqual(['get', 'patch', 'update'])
    expect(findSubresource(configMapKind, 'status')).toBeUndefined()
  })

  it('are sorted by name', () => {
    for (const kind of [podKind, namespaceKind]) {
      const names = subresourcesOf(kind).map(({ name }) => name)
      expect(names).toEqual([...names].sort())
    }
  })

  it('depend on the group: pods of another group have none of these', () => {
    expect(findSubresource({ ...podKind, group: 'metrics.k8s.io' }, 'binding')).toBeUndefined()
  })

  it('do not exist for reviews, which have only create', () => {
    const isReview = ALL_KINDS.filter((kind) => kind.isReview)
    expect(isReview.map(({ kind }) => kind)).toContain('TokenReview')
    for (const kind of isReview) expect(verbsOf(kind), kind.kind).toEqual(['create'])
  })
})

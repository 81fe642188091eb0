import { describe, expect, it } from 'vitest'
import type { Stored } from '../../api/kind.ts'
import type { ControllerRevision } from '../../api/kinds/controller-revision/controller-revision-schema.ts'
import { clone } from '../../base/clone.ts'
import { revisionHash, revisionName } from './revision-name.ts'
import { planHistory, planRevision, readTemplate, sortRevisions } from './revisions.ts'
import { createSet } from './stateful-sets.fixture.ts'

const setWith = (image: string) =>
  createSet({ template: { metadata: { labels: { app: 'web' } }, spec: { containers: [{ name: 'main', image }] } } })

/** Returns the stored revision of a template with this image. */
function storedRevision(image: string, revision: number): Stored<ControllerRevision> {
  const action = planRevision(setWith(image), [], 0)
  if (action.do !== 'create') throw new Error('expected a new revision')
  const { metadata, data } = action.revision
  return { metadata: { ...metadata, name: metadata.name!, uid: image, resourceVersion: '1' }, data, revision }
}

describe('revisionHash', () => {
  it('SYS-27 is the hash that kube-controller-manager computes for the same data', () => {
    const command = ['sh', '-c', 'a > b && c'] // Go escapes < and &
    const container = { resources: {}, name: 'main', image: 'v1', command }
    const template = { spec: { containers: [container] }, metadata: { labels: { app: 'web' } }, $patch: 'replace' }
    expect(revisionHash({ spec: { template } }, 0)).toBe('5978c4764')
    expect(revisionHash({ spec: { template } }, 1)).not.toBe('5978c4764')
  })

  it("SYS-27 is part of the name, after at most 223 characters of the set's name", () => {
    expect(revisionName('web', 'bcd')).toBe('web-bcd')
    expect(revisionName('x'.repeat(240), 'bcd')).toBe(`${'x'.repeat(223)}-bcd`)
  })
})

describe('planRevision', () => {
  it('SYS-27 creates the first revision, owned by the set and labelled with its hash', () => {
    const action = planRevision(setWith('v1'), [], 0)
    expect(action).toMatchObject({
      do: 'create',
      revision: {
        metadata: {
          name: expect.stringMatching(/^web-[b-z2-9]+$/),
          labels: { app: 'web', 'controller.kubernetes.io/hash': expect.any(String) },
          ownerReferences: [{ kind: 'StatefulSet', name: 'web', uid: 'set-uid', controller: true }],
        },
        data: { spec: { template: { $patch: 'replace', spec: { containers: [{ image: 'v1', resources: {} }] } } } },
        revision: 1,
      },
    })
  })

  it('SYS-27 uses the newest revision while the template is the same, and numbers a new one higher', () => {
    const revisions = [storedRevision('v1', 1), storedRevision('v2', 2)]
    expect(planRevision(setWith('v2'), revisions, 0)).toEqual({ do: 'use', revision: revisions[1] })
    expect(planRevision(setWith('v3'), revisions, 0)).toMatchObject({ do: 'create', revision: { revision: 3 } })
  })

  it('SYS-27 renumbers an older revision of the same template instead of duplicating it', () => {
    const revisions = [storedRevision('v1', 1), storedRevision('v2', 2)]
    expect(planRevision(setWith('v1'), revisions, 0)).toEqual({ do: 'renumber', revision: revisions[0], number: 3 })
  })

  it('SYS-27 recognizes the template in a revision of another release, with other empty fields and fewer defaults', () => {
    const revision = clone(storedRevision('v1', 1)) as { data: any } & Stored<ControllerRevision>
    const { template } = revision.data.spec
    template.metadata.creationTimestamp = null
    delete template.spec.containers[0].resources
    delete template.spec.enableServiceLinks
    expect(planRevision(setWith('v1'), [revision], 0)).toEqual({ do: 'use', revision })
    expect(planRevision(setWith('v1'), [revision, storedRevision('v2', 2)], 0)).toMatchObject({ do: 'renumber' })
  })

  it('SYS-27 stores a template that can be restored', () => {
    expect(readTemplate(storedRevision('v1', 1)).spec).toMatchObject({
      containers: [{ name: 'main', image: 'v1' }],
      restartPolicy: 'Always',
    })
    expect(readTemplate(storedRevision('v1', 1))).not.toHaveProperty('$patch')
  })
})

describe('planHistory', () => {
  const revisions = sortRevisions([4, 2, 1, 3].map((number) => storedRevision(`v${number}`, number)))
  const used = new Set([revisions[0]!.metadata.name, revisions[3]!.metadata.name])
  const deletedWith = (revisionHistoryLimit: number) =>
    planHistory(createSet({ revisionHistoryLimit }), revisions, used).map(({ revision }) => revision)

  it('SYS-27 deletes the oldest unused revisions beyond the limit', () => {
    expect([deletedWith(0), deletedWith(1), deletedWith(2), deletedWith(-1)]).toEqual([[2, 3], [2], [], []])
  })
})

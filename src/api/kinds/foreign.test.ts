import { describe, expect, it } from 'vitest'
import { FOREIGN_KINDS } from './foreign.ts'
import { ALL_KINDS } from './index.ts'
import { CORE_INFORMERS, GROUPS, SIDECAR_INFORMERS } from './upstream-informers.fixture.ts'

interface WatchedResource {
  readonly group: string
  readonly version: string
  readonly plural: string
}

/** Parses `Resource().V1().DeviceTaintRules()`. */
function parseInformer(informer: string): WatchedResource {
  const [, factory = '', version = '', plural = ''] = /^(\w+)\(\)\.(\w+)\(\)\.(\w+)\(\)$/.exec(informer) ?? []
  const group = GROUPS[factory]
  if (group === undefined) throw new Error(`${informer}: add the API group ${factory} to GROUPS`)
  return { group, version: version.toLowerCase(), plural: plural.toLowerCase() }
}

const isServed = ({ group, version, plural }: WatchedResource): boolean =>
  ALL_KINDS.some((kind) => kind.group === group && kind.plural === plural && kind.versions.includes(version))

const informers = { ...CORE_INFORMERS, ...SIDECAR_INFORMERS }

describe('ALL_KINDS', () => {
  it.each(Object.keys(informers))('CAP-19 includes the resource of the informer %s', (informer) => {
    expect(isServed(parseInformer(informer))).toBe(true)
  })
})

describe('foreign kinds', () => {
  it('are watched by an upstream program in each of their versions, except CustomResourceDefinition', () => {
    const watchedResources = Object.keys(informers).map(parseInformer)
    const isWatched = (group: string, version: string, plural: string) =>
      watchedResources.some((entry) => entry.group === group && entry.version === version && entry.plural === plural)
    const unwatchedVersions = FOREIGN_KINDS.filter(({ group }) => group !== 'apiextensions.k8s.io').flatMap(
      ({ group, versions, plural }) =>
        versions
          .filter((version) => !isWatched(group, version, plural))
          .map((version) => `${group}/${version} ${plural}`),
    )
    expect(unwatchedVersions).toEqual([])
  })

  it('do not hide a kind that this server stores', () => {
    const storedResources = ALL_KINDS.filter((kind) => !kind.isForeign).map(({ group, plural }) => `${group}/${plural}`)
    expect(FOREIGN_KINDS.filter(({ group, plural }) => storedResources.includes(`${group}/${plural}`))).toEqual([])
  })
})

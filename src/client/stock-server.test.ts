import { expect, it } from 'vitest'
import { persistentVolumeClaimKind } from '../api/kinds/claim/claim.ts'
import { stockJson } from './stock-server.fixture.ts'

it('stockJson writes an absent scalar of a nested object as null in some forms, and omits it in others', () => {
  const claim = { metadata: { name: 'a' }, spec: { resources: { requests: { storage: '1Gi' } } }, status: {} }
  const objects = [0, 1, 2, 3, 4, 5].map((form) => stockJson(persistentVolumeClaimKind.type, claim, form))
  const formsOf = (section: string, field: string) =>
    new Set(objects.map((object) => (object[section] as Record<string, unknown>)[field]))
  for (const [section, field] of [
    ['spec', 'volumeName'],
    ['spec', 'volumeMode'],
    ['status', 'phase'],
    ['metadata', 'generateName'],
  ] as const) {
    expect(formsOf(section, field), `${section}.${field}`).toEqual(new Set([null, undefined]))
  }
})

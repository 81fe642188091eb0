import { expect, it } from 'vitest'
import { aClaimObject } from '../logic/claim.fixture.ts'
import { projectClaim } from './claim.ts'

it('projects sizes to bytes, and the requested attributes class only if it differs', () => {
  const row = projectClaim(
    aClaimObject('data', {
      spec: { volumeAttributesClassName: 'gold' },
      status: { currentVolumeAttributesClassName: 'silver' },
    }),
  )
  expect(row).toMatchObject({ capacityBytes: 10 * 1024 ** 3, attributesClass: 'silver', targetAttributesClass: 'gold' })
  const settled = projectClaim(
    aClaimObject('data', {
      spec: { volumeAttributesClassName: 'gold' },
      status: { currentVolumeAttributesClassName: 'gold' },
    }),
  )
  expect(settled.targetAttributesClass).toBeUndefined()
})

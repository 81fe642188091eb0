import { expect, it } from 'vitest'
import { formatAge } from './format-age.ts'

it('formatAge uses the largest unit that fits into the age at least twice', () => {
  expect([0, 119, 120, 1_659, 7_199, 7_200, 172_799, 172_800].map(formatAge)).toEqual([
    ...['0 s', '119 s', '2 min', '27 min', '119 min', '2 h', '47 h', '2 d'],
  ])
})

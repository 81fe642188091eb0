import { describe, expect, it } from 'vitest'
import { ApiError, noSuchPath, notFound } from '../../api/status-error.ts'
import { type BindingContext, readClaim, readVolume } from './context.ts'

const contextThatAnswers = (error: ApiError) =>
  ({ client: { get: async () => Promise.reject(error) } }) as unknown as BindingContext

describe('reading a claim or volume before it is given up', () => {
  it('PROV-5 it is gone when the server says so of this very object', async () => {
    const volume = contextThatAnswers(notFound({ group: '', plural: 'persistentvolumes' }, 'pv'))
    expect(await readVolume(volume, 'pv')).toBeUndefined()
    const claim = contextThatAnswers(notFound({ group: '', plural: 'persistentvolumeclaims' }, 'c'))
    expect(await readClaim(claim, { namespace: 'shop', name: 'c' })).toBeUndefined()
  })

  it.each([
    ['a kind that is switched off', noSuchPath()],
    ["a proxy's page", new ApiError(404, 'NotFound', 'the server answered 404: page not found')],
  ])('SYS-15 %s says nothing about it: nothing is decided', async (_, error) => {
    await expect(readVolume(contextThatAnswers(error), 'pv')).rejects.toBe(error)
  })
})

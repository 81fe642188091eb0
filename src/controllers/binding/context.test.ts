import { describe, expect, it } from 'vitest'
import { ApiError, noSuchPath, notFound } from '../../api/status-error.ts'
import { type BindingContext, readClaim, readVolume } from './context.ts'

const contextThatThrows = (error: ApiError) =>
  ({ client: { get: async () => Promise.reject(error) } }) as unknown as BindingContext

describe('readVolume and readClaim', () => {
  it('PROV-5 return undefined when the server answers that this object does not exist', async () => {
    const volume = contextThatThrows(notFound({ group: '', plural: 'persistentvolumes' }, 'pv'))
    expect(await readVolume(volume, 'pv')).toBeUndefined()
    const claim = contextThatThrows(notFound({ group: '', plural: 'persistentvolumeclaims' }, 'c'))
    expect(await readClaim(claim, { namespace: 'shop', name: 'c' })).toBeUndefined()
  })

  it.each([
    ['a kind that is not served', noSuchPath()],
    ["a proxy's page", new ApiError(404, 'NotFound', 'the server answered 404: page not found')],
  ])('SYS-15 throw on %s, because the object may exist', async (_, error) => {
    await expect(readVolume(contextThatThrows(error), 'pv')).rejects.toBe(error)
  })
})

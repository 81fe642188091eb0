import { describe, expect, it } from 'vitest'
import { ApiError, noSuchPath, notFound } from '../../api/status-error.ts'
import { type BindingContext, readClaim, readVolume } from './context.ts'

const createFailingContext = (error: ApiError) =>
  ({ client: { get: async () => Promise.reject(error) } }) as unknown as BindingContext

describe('readVolume and readClaim', () => {
  it('return undefined if the server reports that the object does not exist', async () => {
    const volumeContext = createFailingContext(notFound({ group: '', plural: 'persistentvolumes' }, 'pv'))
    expect(await readVolume(volumeContext, 'pv')).toBeUndefined()
    const claimContext = createFailingContext(notFound({ group: '', plural: 'persistentvolumeclaims' }, 'c'))
    expect(await readClaim(claimContext, { namespace: 'shop', name: 'c' })).toBeUndefined()
  })

  it.each([
    ['a kind that is not served', noSuchPath()],
    ['an error page of a proxy', new ApiError(404, 'NotFound', 'the server answered 404: page not found')],
  ])('SYS-15 throw for %s, because the object may exist', async (_, error) => {
    await expect(readVolume(createFailingContext(error), 'pv')).rejects.toBe(error)
    await expect(readClaim(createFailingContext(error), { namespace: 'shop', name: 'c' })).rejects.toBe(error)
  })
})

// Test fixture: a CSI driver with scripted responses.
import { create } from '@bufbuild/protobuf'
import { type CsiDriver, createCsiDriver } from './driver.ts'
import { CsiError } from './errors.ts'

/** Creates a driver that returns the next response of a method for each call, and repeats the last one. */
export function createScriptedDriver(responses: Record<string, (object | CsiError)[]>): CsiDriver {
  return createCsiDriver(async (method, _request, { signal }) => {
    if (signal?.aborted) throw new CsiError('CANCELLED', 'cancelled')
    const queue = responses[method.name]
    const response = queue && (queue.length > 1 ? queue.shift() : queue[0])
    if (!response) throw new CsiError('UNIMPLEMENTED', 'not implemented')
    if (response instanceof CsiError) throw response
    return create(method.output, response as never)
  })
}

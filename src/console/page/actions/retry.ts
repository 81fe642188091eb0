// Requests an immediate retry of an object's operations, like `stowage retry`.
import type { RetryRequest, RetryResponse } from '../../protocol.ts'
import { messageOf, request } from '../state/api.ts'
import { showToast } from '../state/toasts.ts'

export async function retryNow(body: RetryRequest): Promise<void> {
  const label = `${body.namespace ? `${body.namespace}/` : ''}${body.name}`
  try {
    const { operations } = await request<RetryResponse>('/data/retry', { method: 'POST', body })
    const effect =
      operations === undefined
        ? ''
        : operations.length === 0
          ? ' The object has no operation in progress or waiting.'
          : ` The retry concerns ${operations.length === 1 ? '1 operation' : `${operations.length} operations`}.`
    showToast(`Requested a retry of ${label}.${effect}`)
  } catch (error) {
    showToast(messageOf(error), 'bad')
  }
}

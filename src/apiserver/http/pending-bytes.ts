// Limits the bytes of all responses that clients have not received yet. If the limit is exceeded, the connection that has
// been waiting for its client the longest is closed.

export interface PendingBytes {
  /** Sets the number of bytes that a response still has to send. */
  update(response: ClosableResponse, bytes: number): void
  /** Stops counting a response that has ended. */
  remove(response: ClosableResponse): void
  readonly total: number
}

export interface ClosableResponse {
  destroy(): unknown
}

export function createPendingBytes(bytesMax: number, onClosed: (bytes: number) => void): PendingBytes {
  /** Pending bytes by response, in the order in which the responses began to wait. */
  const bytesByResponse = new Map<ClosableResponse, number>()
  let total = 0

  function remove(response: ClosableResponse): void {
    total -= bytesByResponse.get(response) ?? 0
    bytesByResponse.delete(response)
  }

  return {
    update(response, bytes) {
      if (bytes === 0) return remove(response)
      total += bytes - (bytesByResponse.get(response) ?? 0)
      bytesByResponse.set(response, bytes)
      while (total > bytesMax && bytesByResponse.size > 1) {
        const [slowest, slowestBytes] = bytesByResponse.entries().next().value!
        remove(slowest)
        slowest.destroy()
        onClosed(slowestBytes)
      }
    },
    remove,
    get total() {
      return total
    },
  }
}

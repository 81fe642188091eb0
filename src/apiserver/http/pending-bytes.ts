// Limits the total bytes of responses that clients have not received yet. If the limit is exceeded, connections of the
// user with the most pending bytes are closed, first the one that has waited the longest for its client. A response is not closed
// if no other response has pending bytes.

export interface PendingBytes {
  /** Sets the number of bytes that a response to this user still has to send. */
  update(response: ClosableResponse, bytes: number, user: string): void
  /** Stops counting a response that has no pending bytes or has ended. */
  remove(response: ClosableResponse): void
  readonly total: number
}

export interface ClosableResponse {
  destroy(): unknown
}

interface UserResponses {
  readonly user: string
  bytes: number
  /** Pending bytes by response, in the order in which the responses began to wait. */
  readonly bytesByResponse: Map<ClosableResponse, number>
}

export function createPendingBytes(bytesMax: number, onClosed: (bytes: number) => void): PendingBytes {
  const users = new Map<string, UserResponses>()
  const userByResponse = new Map<ClosableResponse, UserResponses>()
  let total = 0

  function set(responses: UserResponses, response: ClosableResponse, bytes: number): void {
    const change = bytes - (responses.bytesByResponse.get(response) ?? 0)
    total += change
    responses.bytes += change
    responses.bytesByResponse.set(response, bytes)
  }

  function remove(response: ClosableResponse): void {
    const responses = userByResponse.get(response)
    if (!responses) return
    set(responses, response, 0)
    responses.bytesByResponse.delete(response)
    userByResponse.delete(response)
    if (responses.bytesByResponse.size === 0) users.delete(responses.user)
  }

  /** Returns the responses of the user with the most pending bytes. */
  function findLargest(): UserResponses {
    let largestResponses: UserResponses | undefined
    for (const responses of users.values()) {
      if (!largestResponses || responses.bytes > largestResponses.bytes) largestResponses = responses
    }
    return largestResponses!
  }

  return {
    update(response, bytes, user) {
      if (bytes === 0) return remove(response)
      const responses = users.get(user) ?? { user, bytes: 0, bytesByResponse: new Map() }
      users.set(user, responses)
      userByResponse.set(response, responses)
      set(responses, response, bytes)
      while (total > bytesMax && userByResponse.size > 1) {
        const [slowest, slowestBytes] = findLargest().bytesByResponse.entries().next().value!
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

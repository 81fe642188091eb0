// Tracks the open watches, logs and sessions with the credentials of their requests, and ends those whose credentials are no
// longer valid.
import type { ApiRequest, StreamSink } from './http/messages.ts'
import type { Authenticator, UserInfo } from './security/index.ts'

interface OpenWatch {
  readonly authorization: string | undefined
  readonly clientCert: ApiRequest['clientCert']
  /** The authenticated user, who may have impersonated another one. */
  readonly user: UserInfo
  readonly sink: Pick<StreamSink, 'end' | 'onClose'>
}

export interface OpenWatches {
  add(request: ApiRequest, user: UserInfo, sink: OpenWatch['sink']): void
  /**
   * Ends the watches whose credentials are no longer valid, or belong to another user or other groups. Returns their number.
   * Checks only the watches of users for whom `isAffected` returns true; by default, all watches.
   */
  endUnauthenticated(isAffected?: (user: UserInfo) => boolean): number
}

export function createOpenWatches(authenticator: Authenticator): OpenWatches {
  const watches = new Set<OpenWatch>()
  return {
    add({ headers, clientCert }, user, sink) {
      const watch = { authorization: headers.authorization, clientCert, user, sink }
      watches.add(watch)
      sink.onClose(() => watches.delete(watch))
    },
    endUnauthenticated(isAffected = () => true) {
      const endedWatches = [...watches].filter(({ authorization, clientCert, user }) => {
        if (!isAffected(user)) return false
        const authentication = authenticator.authenticate({ authorization, clientCert })
        return authentication.is === 'rejected' || !isSameUser(authentication.user, user)
      })
      for (const { sink } of endedWatches) sink.end()
      return endedWatches.length
    },
  }
}

const isSameUser = (a: UserInfo, b: UserInfo): boolean =>
  a === b || (a.name === b.name && a.uid === b.uid && a.groups.join('\n') === b.groups.join('\n'))

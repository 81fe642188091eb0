// Tracks the open streams (watches, logs of containers, exec sessions) with the credentials of their requests, and ends those
// whose credentials are no longer valid.
import type { ApiRequest, StreamSink } from './http/messages.ts'
import type { Authenticator, UserInfo } from './security/index.ts'

interface OpenStream {
  readonly authorization: string | undefined
  readonly clientCert: ApiRequest['clientCert']
  /** The authenticated user, who may have impersonated another one. */
  readonly user: UserInfo
  readonly sink: Pick<StreamSink, 'end' | 'onClose'>
}

export interface OpenStreams {
  add(request: ApiRequest, user: UserInfo, sink: OpenStream['sink']): void
  /**
   * Ends the streams whose credentials are no longer valid, or belong to another user or other groups. Returns their number.
   * Checks only the streams of users for whom `isAffected` returns true; by default, all streams.
   */
  endUnauthenticated(isAffected?: (user: UserInfo) => boolean): number
}

export function createOpenStreams(authenticator: Authenticator): OpenStreams {
  const streams = new Set<OpenStream>()
  return {
    add({ headers, clientCert }, user, sink) {
      const stream = { authorization: headers.authorization, clientCert, user, sink }
      streams.add(stream)
      sink.onClose(() => streams.delete(stream))
    },
    endUnauthenticated(isAffected = () => true) {
      const endedStreams = [...streams].filter(({ authorization, clientCert, user }) => {
        if (!isAffected(user)) return false
        const authentication = authenticator.authenticate({ authorization, clientCert })
        return authentication.is === 'rejected' || !isSameUser(authentication.user, user)
      })
      for (const { sink } of endedStreams) sink.end()
      return endedStreams.length
    },
  }
}

const isSameUser = (a: UserInfo, b: UserInfo): boolean =>
  a === b || (a.name === b.name && a.uid === b.uid && a.groups.join('\n') === b.groups.join('\n'))

// esbuild bundles imported styles.
declare module '*.css'

declare module "*?worker&inline" {
  const Spawn: new () => Worker;
  export default Spawn;
}

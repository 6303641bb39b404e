// A PNG is drawn from the SVG beside it, twice as fine, when it is asked for.
document.querySelectorAll("a.png").forEach((link) => {
  link.hidden = false;
  link.addEventListener("click", async (event) => {
    if (link.href.startsWith("data:")) return;
    event.preventDefault();
    const image = new Image();
    image.src = link.previousElementSibling.href;
    await image.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [image.width * 2, image.height * 2];
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    link.href = canvas.toDataURL("image/png");
    link.click();
  });
});
